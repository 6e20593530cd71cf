// Neighbourhoods of any shape: several edges between the same two processes, to oneself, and in a grid to nobody;
// blocks of all lengths, with gaps and without, among other collectives; and blocks that are longer than their room.
//# ranks: 1 2 3
//# abi: mpich, mpi5, openmpi
#include "check.h"
#include <unistd.h>

enum { OUT = 6, MANY = 70, LONGEST = 20000, ROUNDS = 150, MOMENT = 300 };
static const int lengths[] = {0, 1, 7, 25, 300, 1300, LONGEST};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

// Whom edge `edge` of process `from` leads to.
static int target(int from, int edge) {
    static const int steps[OUT] = {1, 0, 1, -1, 0, 2};
    return (from + steps[edge] + 2 * size) % size;
}

// The edges to this process, those of each source in its order.
static int in, sources[OUT * 3], edges[OUT * 3], weights[MANY];
static MPI_Comm knot(void) {
    MPI_Comm graph;
    int targets[OUT];
    in = 0;
    for (int ahead = 0; ahead < size; ahead++)
        for (int edge = 0, from = (rank + ahead) % size; edge < OUT; edge++)
            if (target(from, edge) == rank) sources[in] = from, edges[in++] = edge;
    for (int edge = 0; edge < OUT; edge++) targets[edge] = target(rank, edge);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, sources, weights, OUT, targets, weights,
                                   MPI_INFO_NULL, 0, &graph);
    MPI_Comm_set_errhandler(graph, MPI_ERRORS_RETURN);
    return graph;
}

static int value(int from, int edge, int round, int at) { return ((from * OUT + edge) * ROUNDS + round) * 31 + at; }

static int *room(int count) {
    int *made = malloc(count * sizeof(int));
    CHECK(made);
    for (int i = 0; i < count; i++) made[i] = -1;
    return made;
}

// One length for all edges.
static void equal(MPI_Comm graph, int length, int round) {
    int *out = room(OUT * length + 1), *got = room(in * length + 1);
    for (int edge = 0; edge < OUT; edge++)
        for (int i = 0; i < length; i++) out[edge * length + i] = value(rank, edge, round, i);
    CHECK_EQ(MPI_Neighbor_alltoall(out, length, MPI_INT, got, length, MPI_INT, graph), MPI_SUCCESS);
    for (int j = 0; j < in; j++)
        for (int i = 0; i < length; i++) CHECK_EQ(got[j * length + i], value(sources[j], edges[j], round, i));
    CHECK_EQ(got[in * length], -1);
    CHECK_EQ(MPI_Neighbor_allgather(out, length, MPI_INT, got, length, MPI_INT, graph), MPI_SUCCESS);
    for (int j = 0; j < in; j++)
        for (int i = 0; i < length; i++) CHECK_EQ(got[j * length + i], value(sources[j], 0, round, i));
    free(out);
    free(got);
}

// A length for each edge, backwards in memory; every second edge has each element apart.
static void varying(MPI_Comm graph, int round) {
    MPI_Datatype apart, types_out[OUT], types_in[OUT * 3];
    int counts_out[OUT], counts_in[OUT * 3];
    MPI_Aint starts_out[OUT], starts_in[OUT * 3], end = 0;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &apart);
    MPI_Type_commit(&apart);
    for (int edge = OUT; edge-- > 0;) {
        counts_out[edge] = lengths[(rank + edge + round) % LENGTHS];
        types_out[edge] = edge % 2 ? apart : MPI_INT;
        starts_out[edge] = end;
        end += 2 * counts_out[edge] * sizeof(int);
    }
    int *out = room(end / sizeof(int) + 1);
    for (int edge = 0; edge < OUT; edge++)
        for (int i = 0; i < counts_out[edge]; i++)
            out[starts_out[edge] / sizeof(int) + i * (1 + edge % 2)] = value(rank, edge, round, i);
    end = 0;
    for (int j = in; j-- > 0;) {
        counts_in[j] = lengths[(sources[j] + edges[j] + round) % LENGTHS];
        types_in[j] = j % 2 ? MPI_INT : apart;
        starts_in[j] = end;
        end += 2 * counts_in[j] * sizeof(int);
    }
    int *got = room(end / sizeof(int) + 1);
    CHECK_EQ(MPI_Neighbor_alltoallw(out, counts_out, starts_out, types_out, got, counts_in, starts_in, types_in, graph),
             MPI_SUCCESS);
    for (int j = 0; j < in; j++)
        for (int i = 0; i < 2 * counts_in[j]; i++) {
            int step = j % 2 ? 1 : 2, is_there = i % step == 0 && i / step < counts_in[j];
            int expected = is_there ? value(sources[j], edges[j], round, i / step) : -1;
            CHECK_EQ(got[starts_in[j] / sizeof(int) + i], expected);
        }
    MPI_Type_free(&apart);
    free(out);
    free(got);
}

// Other collectives between, and members that come late.
static void mixed(MPI_Comm graph) {
    for (int round = 0; round < ROUNDS; round++) {
        int sum = 0, few[OUT], got[OUT * 3], late[OUT * 3];
        MPI_Request request;
        if (round % 50 == 10 * rank) usleep(MOMENT);
        equal(graph, lengths[round % 4], round);
        for (int edge = 0; edge < OUT; edge++) few[edge] = value(rank, edge, round, 0);
        MPI_Ineighbor_alltoall(few, 1, MPI_INT, late, 1, MPI_INT, graph, &request);
        if (round % 3 == 0) MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, graph);
        if (round % 3 == 0) CHECK_EQ(sum, round * size);
        if (round % 5 == 0) MPI_Bcast(&sum, 1, MPI_INT, round % size, graph);
        MPI_Neighbor_alltoall(few, 1, MPI_INT, got, 1, MPI_INT, graph);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int j = 0; j < in; j++) CHECK(got[j] == value(sources[j], edges[j], round, 0) && late[j] == got[j]);
        if (round % 7 == 0) varying(graph, round);
    }
}

// Both ends of a line have nobody on one side.
static void line(void) {
    MPI_Comm line;
    int open = 0;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &open, 0, &line);
    for (int k = 0; k < LENGTHS; k++) {
        int length = lengths[k], *out = room(2 * length + 1), *got = room(2 * length + 1);
        for (int i = 0; i < 2 * length; i++) out[i] = rank * 1000000 + i;
        MPI_Neighbor_alltoall(out, length, MPI_INT, got, length, MPI_INT, line);
        for (int i = 0; i < length; i++) {
            CHECK_EQ(got[i], rank == 0 ? -1 : (rank - 1) * 1000000 + length + i);
            CHECK_EQ(got[length + i], rank == size - 1 ? -1 : (rank + 1) * 1000000 + i);
        }
        free(out);
        free(got);
    }
    MPI_Comm_free(&line);
}

// More edges than a list has, all to the next process.
static void many(void) {
    MPI_Comm graph;
    int next[MANY], last[MANY], out[MANY], got[MANY];
    for (int i = 0; i < MANY; i++) next[i] = (rank + 1) % size, last[i] = (rank + size - 1) % size;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, MANY, last, weights, MANY, next, weights,
                                   MPI_INFO_NULL, 0, &graph);
    for (int i = 0; i < MANY; i++) out[i] = rank * MANY + i;
    MPI_Neighbor_alltoall(out, 1, MPI_INT, got, 1, MPI_INT, graph);
    for (int i = 0; i < MANY; i++) CHECK_EQ(got[i], last[i] * MANY + i);
    MPI_Comm_free(&graph);
}

// Process 0 has room for fewer elements than come along its last edge; it is told so, and nobody else.
static void too_long(MPI_Comm graph, int length) {
    int counts[OUT], starts[OUT], counts_in[OUT * 3], starts_in[OUT * 3];
    for (int edge = 0; edge < OUT; edge++) counts[edge] = length, starts[edge] = edge * length;
    for (int j = 0; j < in; j++) counts_in[j] = length, starts_in[j] = j * length;
    if (rank == 0) counts_in[in - 1]--;
    int *out = room(OUT * length), *got = room(in * length);
    for (int edge = 0; edge < OUT; edge++)
        for (int i = 0; i < length; i++) out[edge * length + i] = value(rank, edge, 0, i);
    int code = MPI_Neighbor_alltoallv(out, counts, starts, MPI_INT, got, counts_in, starts_in, MPI_INT, graph);
    CHECK_EQ(class_of(code), rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    for (int j = 0; j < in; j++)
        for (int i = 0; i < counts_in[j]; i++) CHECK_EQ(got[j * length + i], value(sources[j], edges[j], 0, i));
    if (rank == 0) CHECK_EQ(got[in * length - 1], -1);
    free(out);
    free(got);
}

// Who is no neighbour may come later, and wait for one that has left.
static void strangers(void) {
    MPI_Comm graph;
    int other = 1 - rank, degree = rank < 2, word = -1;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, &other, weights, degree, &other, weights,
                                   MPI_INFO_NULL, 0, &graph);
    if (rank == 2) MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, &word, 1, MPI_INT, graph);
    if (rank == 0) MPI_Send(&word, 1, MPI_INT, 2, 0, MPI_COMM_WORLD);
    CHECK_EQ(word, rank < 2 ? other : 1);
    MPI_Comm_free(&graph);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm graph = knot();
    for (int k = 0; k < LENGTHS; k++) equal(graph, lengths[k], k);
    for (int round = 0; round < LENGTHS; round++) varying(graph, round);
    mixed(graph);
    line();
    many();
    if (size == 3) strangers();
    for (int k = 1; k < LENGTHS; k++) too_long(graph, lengths[k]);
    equal(graph, 3, 1);
    MPI_Comm_free(&graph);
    return finish();
}
