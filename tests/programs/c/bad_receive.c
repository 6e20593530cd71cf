// A receive whose buffer ends too early kills a rank, with the address: also where the system copies the data.
//# ranks: 2
//# progress: none
//# policies: listed
// Under others a rank that helps may be the one that is killed.
//# nodes: sockets
// libfabric calls the memory bad, and the connection lost.
//# exit: 139
//# stderr: signal 11 (SIGSEGV)
//# stderr: protected (PROT_READ)
//# stderr: MPI accessed it
#include "protected.h"

int main(int argc, char **argv) {
    enum { LENGTH = 600000, GOOD = 40960 };
    start(&argc, &argv);
    receive_too_much(pages_of(LENGTH), LENGTH, GOOD);
    MPI_Finalize();
    return 0;
}
