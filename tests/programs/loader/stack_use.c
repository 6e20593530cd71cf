/* Writes so many KiB of its stack. */
#include <alloca.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 10) << 10 : 0;
    volatile char *used = alloca(bytes + 1);
    memset((char *)used, 1, bytes + 1);
    return used[bytes] != 1;
}
