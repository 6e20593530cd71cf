/* GCC's nested functions whose address is taken run on an executable stack. */
//# ranks: 2
//# abi: mpich mpi5 openmpi
//# libs: -Wno-pedantic -z execstack
#include "check.h"
#include <pthread.h>

static int apply(int (*function)(int), int value)
{
    return function(value);
}

static void *nested(void *argument)
{
    int added = *(int *)argument;
    int add(int value)
    {
        return value + added;
    }
    CHECK(apply(add, 10) == added + 10);
    return NULL;
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    nested(&rank);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, nested, &rank) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return finish();
}
