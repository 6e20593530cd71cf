// Names a procedure of mpi_f08 with arrays as a program of another compiler than gfortran does, and prints whose it is.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

extern void mpi_send_f08ts_(void);

int main(void) {
    Dl_info info;
    if (!dladdr((void *)mpi_send_f08ts_, &info)) {
        return 1;
    }
    puts(info.dli_fname);
    return 0;
}
