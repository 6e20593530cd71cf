/* Forks a child that executes nothing; both sleep. */
#include <unistd.h>
int main(void) {
    if (fork() < 0) return 1;
    sleep(60);
    return 0;
}
