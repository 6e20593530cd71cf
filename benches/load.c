// Other work on a machine, as a build's compilers do it, for as long as it may: children that come and go, each of
// which allocates, fills and sorts memory, and writes a file.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NUMBERS = 1 << 20 };

static int compare(const void *left, const void *right) {
    unsigned a = *(const unsigned *)left, b = *(const unsigned *)right;
    return (a > b) - (a < b);
}

static void compile(unsigned seed) {
    unsigned *numbers = malloc(NUMBERS * sizeof *numbers);
    FILE *file = tmpfile();
    if (!numbers || !file) _exit(1);
    for (int k = 0; k < NUMBERS; k++) numbers[k] = seed = seed * 1664525 + 1013904223;
    qsort(numbers, NUMBERS, sizeof *numbers, compare);
    fwrite(numbers, sizeof *numbers, NUMBERS / 4, file);
    fclose(file);
    _exit(0);
}

int main(void) {
    for (unsigned number = 0;; number++) {
        pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) compile(number);
        waitpid(child, NULL, 0);
    }
}
