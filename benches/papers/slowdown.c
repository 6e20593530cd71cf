/* What a progress mechanism takes from a computation that calls no MPI: pairs of the same work under the policy and
   under none, in turn; once with nothing under way, once with a long receive whose message does not come. Only for MPIs
   that change their policy at run time. */
#include "pair.h"
enum { ROUNDS = 60 };
int MPIX_Progress_set(MPI_Comm comm, const char *policy) __attribute__((weak));
static volatile double sink;
static char outgoing[LONGEST];

static double work_us(void) {
    double start = now_us(), sum = 0;
    for (int i = 1; i < 2000000; i++) sum += 1.0 / i;
    sink = sum;
    return now_us() - start;
}

int main(int argc, char **argv) {
    const char *policy = getenv("COHORT_PROGRESS");
    begin(&argc, &argv);
    for (int pending = 0; pending < 2 && policy && MPIX_Progress_set; pending++) {
        double ratios[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) {
            double times[2];
            for (int half = 0; half < 2; half++) {
                int is_policy = (half + round) % 2;
                MPI_Request request = MPI_REQUEST_NULL;
                MPIX_Progress_set(MPI_COMM_WORLD, is_policy ? policy : "none");
                MPI_Barrier(MPI_COMM_WORLD);
                if (pending) MPI_Irecv(buffer, LONGEST, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &request);
                times[is_policy] = work_us();
                MPI_Barrier(MPI_COMM_WORLD);
                if (pending) MPI_Send(outgoing, LONGEST, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
            ratios[round] = 100 * (times[1] / times[0] - 1);
        }
        if (rank == 0) show("slow-down", pending, spread_of(ratios, ROUNDS));
    }
    return MPI_Finalize();
}
