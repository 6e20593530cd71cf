// For allocators: threads of a rank fill containers, hand blocks to each other and throw exceptions. Prints the size of
// its world and the sum of all ranks plus one, and whose malloc it has.
#include <dlfcn.h>
#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {
constexpr int THREADS = 4, ROUNDS = 20, NAMES = 2000;
std::atomic<std::string *> handed{nullptr};

void fill(int seed) {
    thread_local std::vector<std::string> kept;
    for (int round = 0; round < ROUNDS; round++) {
        std::map<int, std::string> names;
        for (int i = 0; i < NAMES; i++) names[i * seed % 7919] += std::string(1 + i % 100, 'x');
        kept.push_back(names.begin()->second);
        // What another thread has allocated is freed here.
        delete handed.exchange(new std::string(10000, 'y'));
        struct alignas(256) Wide { char bytes[256]; };
        auto wide = std::make_unique<Wide>();
        if (reinterpret_cast<std::uintptr_t>(wide.get()) % 256 != 0) std::abort();
        try {
            throw std::runtime_error(names.rbegin()->second);
        } catch (const std::exception &error) {
            if (error.what()[0] != 'x') std::abort();
        }
    }
}
}  // namespace

int main(int argc, char **argv) {
    int rank, size, one, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < THREADS; thread++) threads.emplace_back(fill, 1 + rank * THREADS + thread);
    for (auto &thread : threads) thread.join();
    delete handed.load();
    one = rank + 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    Dl_info found;
    dladdr(dlsym(RTLD_DEFAULT, "malloc"), &found);
    std::string file = found.dli_fname;
    std::printf("%s: size %d sum %d\n", file.substr(file.rfind('/') + 1).c_str(), size, sum);
    std::fflush(stdout);
    return MPI_Finalize();
}
