/* Threads of a rank allocate, fill, check and free; blocks wander between threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 3, SLOTS = 64, ROUNDS = 20000 };

static struct { unsigned char *block; size_t size; } slots[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned next(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void *work(void *argument)
{
    unsigned state = (unsigned)(long)argument * 7919u + 1;
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = 1 + next(&state) % (round % 100 ? 2000 : 400000);
        unsigned slot = next(&state) % SLOTS;
        unsigned char *block = malloc(size);
        memset(block, (int)size, size);
        pthread_mutex_lock(&lock);
        unsigned char *old = slots[slot].block;
        size_t old_size = slots[slot].size;
        slots[slot].block = block;
        slots[slot].size = size;
        pthread_mutex_unlock(&lock);
        for (size_t i = 0; i < old_size; i += 61)
            if (old[i] != (unsigned char)old_size) {
                fprintf(stderr, "a block of %zu bytes was overwritten\n", old_size);
                exit(1);
            }
        free(old);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("done\n");
    return 0;
}
