// What allocation costs the ranks of a node. Each line is "name value unit-name value ...": what was done, microseconds
// of each time, then system time in microseconds and page faults of each time; means over the ranks, all of which do it
// at once.
//   memory       allocate, write each page, free; protect and unprotect; containers of C++
#include <mpi.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace {
constexpr size_t PAGE = 4096;
constexpr size_t BUDGET = 256 << 20;  // bytes that one measurement allocates
int rank, size;

void write_pages(char *block, size_t bytes) {
    for (size_t at = 0; at < bytes; at += PAGE) static_cast<volatile char *>(block)[at] = 1;
}

double system_us(const rusage &usage) { return usage.ru_stime.tv_sec * 1e6 + usage.ru_stime.tv_usec; }

// Prints what `work` takes, of which there are so many.
template <class Work> void measure(const char *name, int count, Work work) {
    work();
    MPI_Barrier(MPI_COMM_WORLD);
    rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    double start = MPI_Wtime();
    for (int i = 0; i < count; i++) work();
    double taken = (MPI_Wtime() - start) * 1e6;
    getrusage(RUSAGE_SELF, &after);
    double mine[3] = {taken, system_us(after) - system_us(before), double(after.ru_minflt - before.ru_minflt)}, sum[3];
    MPI_Reduce(mine, sum, 3, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        std::printf("%s: %.3f %.3f %.2f\n", name, sum[0] / count / size, sum[1] / count / size, sum[2] / count / size);
    }
}

// Two blocks, the second of half the size, as programs that compute with temporaries have them.
void blocks(size_t bytes) {
    char *one = static_cast<char *>(std::malloc(bytes));
    char *other = static_cast<char *>(std::malloc(bytes / 2));
    write_pages(one, bytes);
    write_pages(other, bytes / 2);
    std::free(one);
    std::free(other);
}

void mapping(size_t bytes) {
    void *block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    write_pages(static_cast<char *>(block), bytes);
    munmap(block, bytes);
}

void protection() {
    static char *pages = static_cast<char *>(std::aligned_alloc(PAGE, 16 * PAGE));
    mprotect(pages, 16 * PAGE, PROT_READ);
    mprotect(pages, 16 * PAGE, PROT_READ | PROT_WRITE);
    write_pages(pages, 16 * PAGE);
}

void vectors() {
    std::vector<double> numbers;
    for (int i = 0; i < 1 << 20; i++) numbers.push_back(i);
}

void trees() {
    std::map<int, std::string> names;
    for (int i = 0; i < 20000; i++) names[i * 7919 % 20011] = std::string(40, 'x');
}
}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct { const char *name; size_t bytes; } sizes[] = {
        {"malloc 64 KB", 64 << 10}, {"malloc 256 KB", 256 << 10}, {"malloc 1 MB", 1 << 20},
        {"malloc 4 MB", 4 << 20},   {"malloc 16 MB", 16 << 20},   {"malloc 64 MB", 64 << 20},
    };
    for (auto [name, bytes] : sizes) {
        int count = BUDGET / bytes < 500 ? int(BUDGET / bytes) : 500;
        measure(name, count, [bytes = bytes] { blocks(bytes); });
    }
    measure("mmap 1 MB", 100, [] { mapping(1 << 20); });
    measure("mprotect 64 KB", 1000, protection);
    measure("std::vector to 8 MB", 10, vectors);
    measure("std::map of 20000", 5, trees);
    MPI_Finalize();
}
