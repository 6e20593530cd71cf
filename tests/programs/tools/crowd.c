// Everybody sends 4 KB to everybody, in several ways, and looks at each byte: many ranks on few descriptors.
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { BLOCK = 4096 };

static unsigned char mark(int from, int to, int round) {
    return (unsigned char)(from * 31 + to * 7 + round);
}

/* How many sockets this process has. */
static int sockets(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[300], target[64] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        if (readlink(path, target, sizeof target - 1) > 0) count += strncmp(target, "socket:", 7) == 0;
    }
    closedir(folder);
    return count;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    unsigned char *out = malloc((size_t)size * BLOCK), *in = malloc((size_t)size * BLOCK);
    for (int round = 0; round < 2; round++) {
        for (int to = 0; to < size; to++) {
            memset(out + (size_t)to * BLOCK, mark(rank, to, round), BLOCK);
        }
        MPI_Alltoall(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, MPI_COMM_WORLD);
        for (size_t at = 0; at < (size_t)size * BLOCK; at++) {
            wrong += in[at] != mark((int)(at / BLOCK), rank, round);
        }
    }
    // Each pair by itself, all at once.
    MPI_Request *requests = malloc(2 * (size_t)size * sizeof *requests);
    memset(in, 0, (size_t)size * BLOCK);
    for (int peer = 0; peer < size; peer++) {
        MPI_Irecv(in + (size_t)peer * BLOCK, BLOCK, MPI_BYTE, peer, 5, MPI_COMM_WORLD, requests + peer);
    }
    for (int peer = 0; peer < size; peer++) {
        memset(out + (size_t)peer * BLOCK, mark(rank, peer, 9), BLOCK);
        MPI_Isend(out + (size_t)peer * BLOCK, BLOCK, MPI_BYTE, peer, 5, MPI_COMM_WORLD, requests + size + peer);
    }
    MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE);
    for (size_t at = 0; at < (size_t)size * BLOCK; at++) {
        wrong += in[at] != mark((int)(at / BLOCK), rank, 9);
    }
    int all = 0, own = sockets(), most = 0;
    MPI_Reduce(&own, &most, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        struct rlimit files;
        getrlimit(RLIMIT_NOFILE, &files);
        printf("%d ranks, %llu files: %d wrong bytes\n", size, (unsigned long long)files.rlim_max, all);
        printf("sockets of a rank: %d\n", most);
    }
    MPI_Finalize();
    return all != 0;
}
