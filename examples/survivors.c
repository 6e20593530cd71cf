// Heat in a rod, whose cells the ranks share. Ranks die on the way; the others read what the dead have left in their
// windows, share the cells among themselves, and go on: no file, no checkpoint.
//
//     mpicc -O2 -o survivors examples/survivors.c && pip-exec --on-failure continue -n 5 ./survivors [deaths]
//
// Each rank keeps its last three states in a window of shared memory. All ranks add up the change of each step before
// the next one begins, so that no two of them are more than one step apart: the oldest state that somebody has is there
// at all. A dead rank's window can be read until the survivors free it.
//# ranks: 5
//# abi: mpi5 openmpi
//# progress: none
//# policies: listed
//# nodes: no
//# settings: COHORT_ON_FAILURE=continue
//# args: 2
//# stdout: right
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 3000, STEPS = 400, STATES = 3 };

// What a rank has in its window.
typedef struct {
    long first, count; // its cells
    long done;         // its last whole step
    double cells[STATES][CELLS];
} Part;

static MPI_Comm comm = MPI_COMM_WORLD;
static MPI_Win window;
static Part *part;
static int me, members;

static double begin(long cell) {
    return cell % 97 * 0.25;
}

static double next(double left, double here, double right) {
    return here + 0.25 * (left - 2 * here + right);
}

// Gives this rank its cells in a new window; the caller fills them.
static void share_cells(void) {
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &members);
    if (MPI_Win_allocate_shared(sizeof *part, 1, MPI_INFO_NULL, comm, &part, &window) != MPI_SUCCESS) {
        MPI_Abort(comm, 1);
    }
    part->first = (long)CELLS * me / members;
    part->count = (long)CELLS * (me + 1) / members - part->first;
}

// One step; the neighbours' cells come in messages. Any error says that somebody has failed.
static int step(long number) {
    const double *old = part->cells[(number - 1) % STATES];
    double *new = part->cells[number % STATES], left = 0, right = 0, change = 0, all;
    int below = me > 0 ? me - 1 : MPI_PROC_NULL, above = me + 1 < members ? me + 1 : MPI_PROC_NULL, code;
    long last = part->count - 1;
    code = MPI_Sendrecv(&old[last], 1, MPI_DOUBLE, above, 0, &left, 1, MPI_DOUBLE, below, 0, comm, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Sendrecv(&old[0], 1, MPI_DOUBLE, below, 1, &right, 1, MPI_DOUBLE, above, 1, comm, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return code;
    for (long i = 0; i <= last; i++) {
        new[i] = next(i > 0 ? old[i - 1] : left, old[i], i < last ? old[i + 1] : right);
        change += (new[i] - old[i]) * (new[i] - old[i]);
    }
    code = MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_SUM, comm);
    if (code == MPI_SUCCESS) part->done = number;
    return code;
}

// After a failure: the survivors share all cells anew, of the last step that everybody has done, the dead too.
static long recover(void) {
    MPI_Win old = window;
    MPI_Comm left;
    int former = members, unit;
    long done = STEPS;
    Part *parts[former];
    MPI_Aint bytes;
    MPIX_Comm_revoke(comm);
    if (MPIX_Comm_shrink(comm, &left) != MPI_SUCCESS) MPI_Abort(comm, 1);
    // From here on nobody changes a state of the old window.
    for (int rank = 0; rank < former; rank++) {
        MPI_Win_shared_query(old, rank, &bytes, &unit, &parts[rank]);
        if (parts[rank]->done < done) done = parts[rank]->done;
    }
    if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
    comm = left;
    share_cells();
    for (int rank = 0; rank < former; rank++) {
        for (long i = 0; i < parts[rank]->count; i++) {
            long place = parts[rank]->first + i - part->first;
            if (place < 0 || place >= part->count) continue;
            part->cells[done % STATES][place] = parts[rank]->cells[done % STATES][i];
        }
    }
    part->done = done;
    // Nobody reads the old window any more.
    if (MPI_Barrier(comm) != MPI_SUCCESS) MPI_Abort(comm, 1);
    MPI_Win_free(&old);
    return done;
}

// What one rank alone comes to.
static void compute_alone(double *cells) {
    double *new = malloc(CELLS * sizeof *new);
    for (long i = 0; i < CELLS; i++) cells[i] = begin(i);
    for (long number = 1; number <= STEPS; number++) {
        for (long i = 0; i < CELLS; i++) {
            new[i] = next(i > 0 ? cells[i - 1] : 0, cells[i], i + 1 < CELLS ? cells[i + 1] : 0);
        }
        memcpy(cells, new, CELLS * sizeof *new);
    }
    free(new);
}

int main(int argc, char **argv) {
    int deaths = argc > 1 ? atoi(argv[1]) : 1, losses = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    share_cells();
    for (long i = 0; i < part->count; i++) part->cells[0][i] = begin(part->first + i);
    for (long number = 1; number <= STEPS; number++) {
        // The last rank but one dies, and later another one.
        if (losses < deaths && number == 100 * (losses + 1) && me == members - 2) raise(SIGKILL);
        if (step(number) == MPI_SUCCESS) continue;
        number = recover();
        losses++;
    }
    static double wanted[CELLS];
    compute_alone(wanted);
    int wrong = 0, all = 0;
    for (long i = 0; i < part->count; i++) wrong += part->cells[STEPS % STATES][i] != wanted[part->first + i];
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, comm);
    if (me == 0) printf("%s: %d of %d ranks are left\n", all == 0 ? "right" : "wrong", members, members + losses);
    MPI_Win_free(&window);
    if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
    MPI_Finalize();
    return all != 0;
}
