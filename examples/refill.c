// A sum whose terms the ranks share. Ranks die at random; after each death the others shrink, spawn as many as are
// missing, merge with them, and go on with the term at which they were.
//
//     mpicc -O2 -o refill examples/refill.c && pip-exec --on-failure continue -n 4 ./refill [seed]
//
// Rank 0, which lives, has added a term only if all have given theirs, so what it knows is what all are told.
//# ranks: 4
//# abi: mpi5
//# progress: none
//# policies: listed
//# nodes: no
//# settings: COHORT_ON_FAILURE=continue
//# args: 5
//# stdout: right
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { TERMS = 600, DEATHS = 4 };

// What all know: the sum of so many terms, and how many ranks there are to be.
typedef struct {
    long terms, sum, ranks, deaths;
} State;

static void stop(const char *what) {
    fprintf(stderr, "%s failed\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// Brings the communicator back to the wanted number of ranks, and has all of them know the same. New ranks come here
// with that of nobody.
static MPI_Comm refill(MPI_Comm comm, char *program, State *state) {
    MPI_Comm parents, left, between, all;
    int members, flag = 1;
    MPI_Comm_get_parent(&parents);
    if (comm == MPI_COMM_NULL) {
        if (MPI_Intercomm_merge(parents, 1, &all) != MPI_SUCCESS) stop("MPI_Intercomm_merge");
    } else {
        MPIX_Comm_revoke(comm);
        if (MPIX_Comm_shrink(comm, &left) != MPI_SUCCESS) stop("MPIX_Comm_shrink");
        if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
        MPI_Comm_size(left, &members);
        int missing = (int)state->ranks - members;
        if (MPI_Comm_spawn(program, MPI_ARGV_NULL, missing, MPI_INFO_NULL, 0, left, &between, MPI_ERRCODES_IGNORE) !=
            MPI_SUCCESS) {
            stop("MPI_Comm_spawn");
        }
        if (MPI_Intercomm_merge(between, 0, &all) != MPI_SUCCESS) stop("MPI_Intercomm_merge");
        MPI_Comm_free(&left);
        MPI_Comm_free(&between);
        state->deaths += missing;
    }
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    // Nobody dies before all have merged.
    if (MPIX_Comm_agree(all, &flag) != MPI_SUCCESS) stop("MPIX_Comm_agree");
    // Others may have added a term more, or less. If one of them has gone on and died already, all begin anew.
    if (MPI_Bcast(state, sizeof *state, MPI_BYTE, 0, all) == MPI_SUCCESS) return all;
    return refill(all, program, state);
}

int main(int argc, char **argv) {
    State state = {0, 0, 0, 0};
    MPI_Comm comm = MPI_COMM_WORLD, parents;
    int me, members;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parents);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_size(comm, &members);
    state.ranks = members;
    unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    if (parents != MPI_COMM_NULL) comm = refill(MPI_COMM_NULL, argv[0], &state);
    while (state.terms < TERMS) {
        MPI_Comm_rank(comm, &me);
        MPI_Comm_size(comm, &members);
        seed = seed * 1664525 + 1013904223 + (unsigned)me;
        if (me != 0 && state.deaths < DEATHS && seed >> 8 & 1 && seed % 37 == 5) raise(SIGKILL);
        long mine = (state.terms + 1) * (me + 1), all = 0;
        if (MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, comm) == MPI_SUCCESS) {
            state.terms++;
            state.sum += all;
        } else {
            comm = refill(comm, argv[0], &state);
        }
    }
    long wanted = state.ranks * (state.ranks + 1) / 2 * ((long)TERMS * (TERMS + 1) / 2);
    MPI_Comm_rank(comm, &me);
    if (me == 0) printf("%s: %ld ranks were lost\n", state.sum == wanted ? "right" : "wrong", state.deaths);
    if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
    MPI_Finalize();
    return state.sum != wanted;
}
