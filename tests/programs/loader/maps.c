/* Prints the path of the MPI library that this rank has loaded. */
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <string.h>

static int print(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    if (strstr(info->dlpi_name, "libmpi"))
        printf("%s\n", info->dlpi_name);
    return 0;
}

int main(void)
{
    return dl_iterate_phdr(print, NULL);
}
