/* What processes that have come together do, to show that they reach each other. */
#include <mpi.h>
#include <stdio.h>

enum { LONG = 200000 };

static int out[LONG], in[LONG];

static void demand(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "%s does not hold\n", what);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

/* A reduction, a ring of long messages, a window. */
static void exchange(MPI_Comm all) {
    MPI_Win window;
    int me, count, sum, one = 1, *memory;
    MPI_Comm_rank(all, &me);
    MPI_Comm_size(all, &count);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    demand(sum == count, "the sum of ones");
    for (int i = 0; i < LONG; i++) out[i] = me * 7 + i;
    int left = (me + count - 1) % count, right = (me + 1) % count;
    MPI_Sendrecv(out, LONG, MPI_INT, right, 3, in, LONG, MPI_INT, left, 3, all, MPI_STATUS_IGNORE);
    for (int i = 0; i < LONG; i++) demand(in[i] == left * 7 + i, "a word of a long message");
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, all, &memory, &window);
    *memory = -1;
    MPI_Win_fence(0, window);
    MPI_Put(&me, 1, MPI_INT, right, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    demand(*memory == left, "a word that was put");
    MPI_Win_free(&window);
}
