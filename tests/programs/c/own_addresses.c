/* A rank maps memory at an address of its own choice that no other rank has: what it does in a process of its own
 * works, and stays its own. Two ranks that choose the same address are told: tests/runner/spaces.rs. */
//# ranks: 2 4
//# abi: mpich mpi5 openmpi
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>

#define MIB (1UL << 20)

static const int usual = MAP_PRIVATE | MAP_ANONYMOUS;

static char *map(char *at, size_t length, int flags)
{
    return mmap(at, length, PROT_READ | PROT_WRITE, usual | flags, -1, 0);
}

/* A segment, attached at an address in turn and over what is there. */
static int attached(char *at)
{
    int segment = shmget(IPC_PRIVATE, 2 * MIB - 100, IPC_CREAT | 0600);
    void *anywhere = segment < 0 ? (void *)-1 : shmat(segment, NULL, 0);
    /* It goes with the last process that has attached it. */
    CHECK(anywhere != (void *)-1 && shmctl(segment, IPC_RMID, NULL) == 0);
    for (int turn = 0; turn < 2; turn++) {
        CHECK(shmat(segment, at, 0) == at);
        at[2 * MIB - 1] = rank + 1;
        CHECK(shmat(segment, at, 0) == (void *)-1 && errno == EINVAL);
        CHECK(shmat(segment, at + 5, SHM_RND | SHM_REMAP) == at && at[2 * MIB - 1] == rank + 1);
        CHECK(shmdt(at) == 0);
        CHECK(map(at, MIB, MAP_FIXED_NOREPLACE) == at);
        CHECK(shmat(segment, at, SHM_REMAP) == at && shmdt(at) == 0);
        CHECK(shmdt(at) == -1 && errno == EINVAL);
    }
    return segment;
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    char *at = (char *)0x210000000000 + (size_t)rank * (64 * MIB);

    /* Where nobody is. */
    CHECK(map(at, 2 * MIB, MAP_FIXED) == at);
    memset(at, rank + 1, 2 * MIB);
    /* Over its own, and again behind it. */
    CHECK(map(at + MIB, 2 * MIB, MAP_FIXED) == at + MIB);
    CHECK(at[MIB] == 0 && at[0] == rank + 1);
    /* Not over its own, if the program does not want that. */
    CHECK(map(at, MIB, MAP_FIXED_NOREPLACE) == MAP_FAILED && errno == EEXIST);
    /* Given back, it is free. */
    CHECK(munmap(at, 3 * MIB) == 0);
    CHECK(map(at, MIB, MAP_FIXED_NOREPLACE) == at);
    CHECK(munmap(at, MIB) == 0);

    /* Moved there, and away from there. */
    char *moved = map(NULL, MIB, 0);
    CHECK(moved != MAP_FAILED);
    moved[5] = rank + 1;
    CHECK(mremap(moved, MIB, 2 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at && at[5] == rank + 1 && !at[MIB]);
    CHECK(mremap(at, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, at + 4 * MIB) == at + 4 * MIB);
    CHECK(map(at, MIB, MAP_FIXED_NOREPLACE) == at && at[5] == 0);
    CHECK(mremap(at, 3 * MIB, MIB, 0) == at);
    CHECK(munmap(at, 5 * MIB) == 0);
    CHECK(mremap(at, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, at + 4 * MIB) == MAP_FAILED && errno == EFAULT);
    CHECK(map(at + 4 * MIB, MIB, MAP_FIXED_NOREPLACE) == at + 4 * MIB && munmap(at + 4 * MIB, MIB) == 0);

    /* Parts of a reservation, as collectors have them. */
    char *room = mmap(NULL, 16 * MIB, PROT_NONE, usual | MAP_NORESERVE, -1, 0);
    CHECK(room != MAP_FAILED);
    for (int part = 0; part < 16; part += 2)
        CHECK(map(room + part * MIB, MIB, MAP_FIXED) == room + part * MIB);
    memset(room + 2 * MIB, rank, MIB);
    CHECK(munmap(room, 16 * MIB) == 0);

    int segment = attached(at);

    /* One rank after the other has the same address. */
    char *common = (char *)0x220000000000;
    for (int turn = 0; turn < size; turn++) {
        if (turn == rank) {
            CHECK(map(common, MIB, MAP_FIXED) == common);
            char *away = map(NULL, MIB, 0);
            CHECK(mremap(common, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, away) == away && munmap(away, MIB) == 0);
            away = map(NULL, MIB, 0);
            CHECK(mremap(away, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, common) == common);
            common[5] = 1;
            CHECK(munmap(common, MIB) == 0);
            CHECK(shmat(segment, common, 0) == common && shmdt(common) == 0);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }

    /* What one has made shorter, another one has the rest of. */
    if (rank == 0) CHECK(map(common, 2 * MIB, MAP_FIXED) == common && mremap(common, 2 * MIB, MIB, 0) == common);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        CHECK(map(common + MIB, MIB, MAP_FIXED) == common + MIB);
        CHECK(map(common + MIB, 2 * MIB, MAP_FIXED) == common + MIB && munmap(common + MIB, 2 * MIB) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) CHECK(munmap(common, MIB) == 0);
    CHECK(mmap(NULL, 0, PROT_READ, usual, -1, 0) == MAP_FAILED && errno == EINVAL);
    return finish();
}
