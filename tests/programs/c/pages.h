/* What a program's allocations cost in pages. The includer says how many bytes a block has: BYTES. */
#ifndef PAGES_H
#define PAGES_H
#include "check.h"
#include <stdlib.h>
#include <sys/resource.h>

/* Pages that this process was given until now. */
static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/* Allocates a block, writes to each of its pages and frees it. */
static void use(void) {
    char *block = malloc(BYTES);
    CHECK(block != NULL);
    for (size_t at = 0; at < BYTES; at += 4096) ((volatile char *)block)[at] = 1;
    free(block);
}

#endif
