/* Experiments between nodes. Prints `name value` lines.
 *   nodes wake      ranks 0 and 1 on different nodes: microseconds by which the answer of a rank that sleeps in
 *                   MPI is later than that of one that was busy polling
 *   nodes stencil   five-point stencil in two stripes: milliseconds of computing and of waiting for halos;
 *                   further ranks wait for the end
 *   nodes steals    ranks 0 and 2 on one node, 1 on the other: rank 0 calls nothing while messages come, rank 2
 *                   waits; what a steal that finds nothing costs, and steals and messages per second
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { MESSAGES = 4000, QUIET_US = 300000, TAG_END = MESSAGES, WAKES = 200, PAUSE_US = 3000 };
enum { WORKERS = 2, WIDTH = 65536, HEIGHT = 64, STEPS = 100 };
static int rank, size;

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median time of a message to rank 0 and back, after a pause in which that waits. */
static double answer(int pause) {
    static double samples[WAKES];
    char word = 0;
    for (int i = 0; i < WAKES; i++) {
        if (rank == 0) {
            MPI_Recv(&word, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&word, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        } else if (rank == 1) {
            if (pause) usleep((useconds_t)pause);
            double begin = MPI_Wtime();
            MPI_Send(&word, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
            MPI_Recv(&word, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            samples[i] = (MPI_Wtime() - begin) * 1e6;
        }
    }
    qsort(samples, WAKES, sizeof *samples, ascending);
    return samples[WAKES / 2];
}

static void wake(void) {
    double awake = answer(0), asleep = answer(PAUSE_US);
    if (rank == 1) printf("awake_us %.1f\nwake_us %.1f\n", awake, asleep - awake);
}

static void relax(const float *from, float *to, int first, int last) {
    for (int row = first; row <= last; row++)
        for (int i = 1; i < WIDTH - 1; i++) {
            const float *at = from + (size_t)row * WIDTH + i;
            to[(size_t)row * WIDTH + i] = 0.2f * (at[0] + at[-1] + at[1] + at[-WIDTH] + at[WIDTH]);
        }
}

/* Each rank has HEIGHT rows and a halo row on either side; the inner rows are computed while halos travel. */
static void stencil(void) {
    size_t cells = (size_t)(HEIGHT + 2) * WIDTH;
    float *old = calloc(cells, sizeof *old), *new = calloc(cells, sizeof *new);
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < WORKERS ? rank + 1 : MPI_PROC_NULL;
    double parts[2] = {0, 0}, sums[2];
    for (size_t i = 0; i < cells; i++) old[i] = new[i] = (float)((i * 7 + (size_t)rank) % 11);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int step = 0; step < STEPS && rank < WORKERS; step++) {
        MPI_Request requests[4];
        double begin = MPI_Wtime();
        MPI_Irecv(old, WIDTH, MPI_FLOAT, up, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(old + (size_t)(HEIGHT + 1) * WIDTH, WIDTH, MPI_FLOAT, down, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(old + WIDTH, WIDTH, MPI_FLOAT, up, 1, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(old + (size_t)HEIGHT * WIDTH, WIDTH, MPI_FLOAT, down, 0, MPI_COMM_WORLD, &requests[3]);
        double posted = MPI_Wtime();
        relax(old, new, 2, HEIGHT - 1);
        double inner = MPI_Wtime();
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        double waited = MPI_Wtime();
        relax(old, new, 1, 1);
        relax(old, new, HEIGHT, HEIGHT);
        parts[0] += inner - posted + MPI_Wtime() - waited;
        parts[1] += posted - begin + waited - inner;
        float *other = old;
        old = new;
        new = other;
    }
    MPI_Reduce(parts, sums, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("compute_ms %.2f\nhalo_ms %.2f\n", sums[0] * 1e3 / WORKERS, sums[1] * 1e3 / WORKERS);
    free(old);
    free(new);
}

/* This rank's value of a counter of ours, or -1. */
static double counter(const char *name) {
    int index, count, provided;
    unsigned long long value = 0;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS) return -1;
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
    MPI_T_pvar_read(session, handle, &value);
    MPI_T_pvar_handle_free(session, &handle);
    MPI_T_pvar_session_free(&session);
    return (double)value;
}

static void steals(void) {
    static volatile int words[MESSAGES];
    static MPI_Request requests[MESSAGES];
    if (rank == 0)
        for (int i = 0; i < MESSAGES; i++)
            MPI_Irecv((int *)&words[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 2) {
        double empty = counter("cohort_steal_net_empty"), begin = MPI_Wtime();
        MPI_Recv(NULL, 0, MPI_INT, 0, TAG_END, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double quiet = MPI_Wtime() - begin, hits = counter("cohort_steal_net_hits");
        printf("failed_us %.3f\n", quiet * 1e6 / (counter("cohort_steal_net_empty") - empty));
        double seconds;
        MPI_Recv(&seconds, 1, MPI_DOUBLE, 0, TAG_END, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        hits = counter("cohort_steal_net_hits") - hits;
        printf("stolen_per_s %.0f\nmessages_per_s %.0f\n", hits / seconds, MESSAGES / seconds);
    } else if (rank == 1) {
        usleep(2 * QUIET_US);
        for (int i = 0, word = 1; i < MESSAGES; i++) MPI_Send(&word, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
    } else {
        usleep(QUIET_US);
        MPI_Send(NULL, 0, MPI_INT, 2, TAG_END, MPI_COMM_WORLD);
        while (words[0] == 0) continue;
        double begin = MPI_Wtime();
        for (int i = 0; i < MESSAGES; i++)
            while (words[i] == 0) continue;
        double seconds = MPI_Wtime() - begin;
        MPI_Send(&seconds, 1, MPI_DOUBLE, 2, TAG_END, MPI_COMM_WORLD);
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && strcmp(argv[1], "stencil") == 0) stencil();
    else if (argc > 1 && strcmp(argv[1], "steals") == 0) steals();
    else wake();
    MPI_Finalize();
    return 0;
}
