/* Rank 1 faults in the way that the first argument names; the others sleep. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define AT_COHORT 0x434f484f5254UL

static const char constant[4096] = "constant";

static int overflow(volatile char *previous)
{
    volatile char frame[4096];
    frame[0] = previous ? previous[0] : 1;
    return overflow(frame) + frame[0];
}

static int large(void)
{
    volatile char frame[48 << 20];
    frame[0] = 1;
    return frame[0];
}

static void write_to(const void *address) { *(volatile char *)(uintptr_t)address = 1; }

static void fault(const char *how)
{
    if (!strcmp(how, "null"))
        write_to(NULL);
    if (!strcmp(how, "wild"))
        write_to((void *)0x8000000000000000UL);
    if (!strcmp(how, "stack"))
        exit(overflow(NULL));
    if (!strcmp(how, "frame"))
        exit(large());
    if (!strcmp(how, "program"))
        write_to(constant);
    if (!strcmp(how, "library"))
        write_to((const void *)(uintptr_t)strtol);
    if (!strcmp(how, "heap")) {
        char *block = malloc(64 << 10);
        char *page = (char *)(((uintptr_t)block + 8192) & ~4095UL);
        mprotect(page, 4096, PROT_READ);
        write_to(page);
    }
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "kill"))
        kill(getpid(), SIGKILL);
    if (!strcmp(how, "divide")) {
        volatile int many = 7, zero = 0;
        exit(many / zero);
    }
}

static void *in_thread(void *how)
{
    fault(how);
    return NULL;
}

/* The same in a thread whose handlers have a stack of their own. */
static void *in_prepared_thread(void *how)
{
    static char room[1 << 16];
    const stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    sigaltstack(&stack, NULL);
    return in_thread(how);
}

int main(int argc, char **argv)
{
    const uint32_t *boot = (const uint32_t *)getauxval(AT_COHORT);
    if (argc < 2)
        return 2;
    if (boot[3] == 1) {
        usleep(30000);
        if (argc > 2) {
            pthread_t thread;
            pthread_create(&thread, NULL, strcmp(argv[2], "prepared") ? in_thread : in_prepared_thread, argv[1]);
            pthread_join(thread, NULL);
        }
        fault(argv[1]);
    }
    sleep(60);
    return 0;
}
