// Prints as many lines as the first argument says, of as many letters as the second, through the C library's buffer,
// which ends in the middle of a line.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    long lines = argc > 1 ? atol(argv[1]) : 1, width = argc > 2 ? atol(argv[2]) : 80;
    const char *rank = getenv("PMI_RANK");
    char *line = malloc(width + 1);
    memset(line, 'A' + (rank ? atoi(rank) % 26 : 0), width);
    line[width] = 0;
    for (long i = 0; i < lines; i++) {
        puts(line);
    }
    return 0;
}
