/* Prints the size that libc believes the main stack to have, and uses most of it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static int use(size_t bytes)
{
    volatile char frame[8192];
    memset((void *)frame, 1, sizeof frame);
    return bytes > sizeof frame ? use(bytes - sizeof frame) + frame[0] - 1 : 0;
}

int main(void)
{
    pthread_attr_t attributes;
    void *start;
    size_t size;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &start, &size);
    printf("stack=%zuK inside=%d\n", (size + 32768) >> 10 >> 6 << 6,
           (char *)&start > (char *)start && (char *)&start < (char *)start + size);
    return use(size / 8 * 7);
}
