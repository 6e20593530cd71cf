/* Prints what a rank was started with: rank, pid, argv[0], AT_RANDOM, arguments. */
#include <stdint.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

#define AT_COHORT 0x434f484f5254UL

int main(int argc, char **argv)
{
    const uint32_t *boot = (const uint32_t *)getauxval(AT_COHORT);
    const unsigned char *random = (const unsigned char *)getauxval(AT_RANDOM);
    printf("rank=%u app=%u pid=%d argv0=%s argc=%d secure=%lu random=", boot[3], boot[5], getpid(),
           argv[0], argc, getauxval(AT_SECURE));
    for (int i = 0; i < 16; i++)
        printf("%02x", random[i]);
    printf("\n");
    return 0;
}
