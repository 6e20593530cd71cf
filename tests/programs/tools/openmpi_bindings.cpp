// C++ with the bindings of Open MPI 4: the library that they are in writes into variables of the C library.
#include <cstdio>
#include <cstring>
#include <mpi.h>

int main(int argc, char **argv) {
    if (argc > 1 && !std::strcmp(argv[1], "thread")) MPI::Init_thread(argc, argv, MPI::THREAD_MULTIPLE);
    else MPI::Init(argc, argv);
    int rank = MPI::COMM_WORLD.Get_rank(), sum = 0;
    MPI::COMM_WORLD.Allreduce(&rank, &sum, 1, MPI::INT, MPI::SUM);
    MPI::Intracomm half = MPI::COMM_WORLD.Split(rank % 2, rank);
    std::printf("rank %d: sum %d, half %d\n", rank, sum, half.Get_size());
    half.Free();
    MPI::Finalize();
    return 0;
}
