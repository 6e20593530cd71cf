// What C++ holds back by itself when a rank ends the job, or the program. An argument has it end well: it has printed
// through a buffer of its own that cannot be written, or many lines.
#include <mpi.h>

#include <iostream>
#include <streambuf>
#include <string>

class Refusing : public std::streambuf {
    int overflow(int next) override { return next; }
    int sync() override { return -1; }
};

int main(int argc, char **argv)
{
    std::ios::sync_with_stdio(false);
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const std::string how = argc > 1 ? argv[1] : "abort";
    static Refusing refusing;
    if (how == "refused")
        std::cout.rdbuf(&refusing);
    for (int line = 0; how != "abort" && line < 2000; line++)
        std::cout << "a line of text\n";
    if (rank == 0 && how == "abort") {
        std::cout << "whole\nbegun";
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
