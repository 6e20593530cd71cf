// Statics and thread-local data are each rank's own.
#include <stdio.h>

static int counted;
static _Thread_local int of_thread = 7;

int main(void) {
    counted++;
    of_thread++;
    printf("own: %d %d\n", counted, of_thread);
    return 0;
}
