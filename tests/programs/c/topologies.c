// Grids, graphs and distributed graphs: queries, parts, and neighbourhood collectives.
//# ranks: 1 2 4 6 8
//# abi: mpich, mpi5, openmpi
//# differential: mpich
#include "check.h"

// A ring of all processes is its own neighbour with one, and twice the same with two.
static void ring(void) {
    MPI_Comm ring;
    int extent = size, periodic = 1, below, above, dims, kind, out[2], in[2];
    MPI_Cart_create(MPI_COMM_WORLD, 1, &extent, &periodic, 0, &ring);
    MPI_Topo_test(ring, &kind);
    CHECK_EQ(kind, MPI_CART);
    MPI_Cartdim_get(ring, &dims);
    CHECK_EQ(dims, 1);
    MPI_Cart_shift(ring, 0, 1, &below, &above);
    CHECK_EQ(below, (rank + size - 1) % size);
    CHECK_EQ(above, (rank + 1) % size);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, ring);
    CHECK(in[0] == below && in[1] == above);
    out[0] = 10 * rank;
    out[1] = 10 * rank + 1;
    MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring);
    // What the process below sent up, and what the one above sent down.
    CHECK_EQ(in[0], 10 * below + 1);
    CHECK_EQ(in[1], 10 * above);
    MPI_Comm_free(&ring);
}

static void grid(void) {
    MPI_Comm grid, row, twin;
    int dims[2] = {0, 0}, periods[2] = {0, 1}, coords[2], there, members, got[2], rings[2];
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid);
    MPI_Comm_rank(grid, &there);
    MPI_Cart_get(grid, 2, got, rings, coords);
    CHECK(got[0] == dims[0] && got[1] == dims[1] && !rings[0] && rings[1]);
    CHECK_EQ(coords[0] * dims[1] + coords[1], there);
    coords[1] -= dims[1];
    MPI_Cart_rank(grid, coords, &members);
    CHECK_EQ(members, there);

    int out[4], in[4] = {-1, -1, -1, -1}, counts[4] = {1, 1, 1, 1}, starts[4] = {3, 2, 1, 0};
    for (int i = 0; i < 4; i++) out[i] = 10 * there + i;
    MPI_Neighbor_alltoallv(out, counts, starts, MPI_INT, in, counts, starts, MPI_INT, grid);
    for (int d = 0; d < 2; d++) {
        int below, above;
        MPI_Cart_shift(grid, d, 1, &below, &above);
        // Block i of the buffers is for neighbour 3 - i.
        CHECK_EQ(in[3 - 2 * d], below == MPI_PROC_NULL ? -1 : 10 * below + 2 - 2 * d);
        CHECK_EQ(in[2 - 2 * d], above == MPI_PROC_NULL ? -1 : 10 * above + 3 - 2 * d);
    }

    int remain[2] = {0, 1};
    MPI_Cart_sub(grid, remain, &row);
    MPI_Comm_size(row, &members);
    CHECK_EQ(members, dims[1]);
    MPI_Comm_dup(row, &twin);
    MPI_Cartdim_get(twin, &members);
    CHECK_EQ(members, 1);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&row);
    MPI_Comm_free(&grid);
}

static void small_grid(void) {
    MPI_Comm point;
    int one = 1, none = 0, members;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &one, &none, 0, &point);
    CHECK((point == MPI_COMM_NULL) == (rank != 0));
    if (point != MPI_COMM_NULL) {
        MPI_Comm_size(point, &members);
        CHECK_EQ(members, 1);
        MPI_Comm_free(&point);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int large = size + 1;
    CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, &large, &none, 0, &point) != MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_Cartdim_get(MPI_COMM_WORLD, &members)), MPI_ERR_TOPOLOGY);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

// A star: process 0 is everyone's neighbour.
static void star(void) {
    MPI_Comm star;
    int index[64], edges[128], count = 0, kind, degree, nodes, all, neighbours[64];
    for (int r = 1; r < size; r++) edges[count++] = r;
    index[0] = count;
    for (int r = 1; r < size; r++) {
        edges[count++] = 0;
        index[r] = count;
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &star);
    MPI_Topo_test(star, &kind);
    CHECK_EQ(kind, MPI_GRAPH);
    MPI_Graphdims_get(star, &nodes, &all);
    CHECK(nodes == size && all == 2 * (size - 1));
    MPI_Graph_neighbors_count(star, rank, &degree);
    CHECK_EQ(degree, rank ? 1 : size - 1);
    MPI_Graph_neighbors(star, rank, 64, neighbours);
    int in[64], sum = 0, expected = 0;
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, star);
    for (int i = 0; i < degree; i++) CHECK_EQ(in[i], neighbours[i]);
    for (int i = 0; i < degree; i++) sum += in[i];
    for (int r = 0; r < size; r++) expected += rank ? 0 : r;
    CHECK_EQ(sum, expected);
    MPI_Comm_free(&star);
}

// Each process sends to the next two; messages are long enough for a rendezvous.
static void chain(MPI_Comm graph) {
    enum { LENGTH = 30000 };
    int in_degree, out_degree, weighted, sources[2], targets[2], to_weights[2], from_weights[2];
    MPI_Dist_graph_neighbors_count(graph, &in_degree, &out_degree, &weighted);
    CHECK(in_degree == 2 && out_degree == 2 && weighted);
    MPI_Dist_graph_neighbors(graph, 2, sources, from_weights, 2, targets, to_weights);
    CHECK_EQ(to_weights[0] + to_weights[1], 11);
    CHECK_EQ(from_weights[0] + from_weights[1], 11);
    int *out = malloc(4 * LENGTH * sizeof(int)), *in = out + 2 * LENGTH;
    for (int i = 0; i < 2 * LENGTH; i++) out[i] = 1000000 * rank + i;
    MPI_Neighbor_allgather(out, LENGTH, MPI_INT, in, LENGTH, MPI_INT, graph);
    for (int i = 0; i < 2 * LENGTH; i += 101)
        CHECK_EQ(in[i], 1000000 * sources[i / LENGTH] + i % LENGTH);
    MPI_Request requests[2];
    int few[2] = {-1, -1}, *late = calloc(2 * LENGTH, sizeof(int));
    MPI_Ineighbor_allgather(out, LENGTH, MPI_INT, late, LENGTH, MPI_INT, graph, &requests[0]);
    MPI_Ineighbor_allgather(&rank, 1, MPI_INT, few, 1, MPI_INT, graph, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(memcmp(late, in, 2 * LENGTH * sizeof(int)) == 0);
    CHECK(few[0] == sources[0] && few[1] == sources[1]);
    free(late);
    int counts[2] = {1, 1};
    MPI_Aint starts[2] = {0, sizeof(int)};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    for (int i = 0; i < 2; i++) out[i] = 100 * rank + targets[i];
    MPI_Neighbor_alltoallw(out, counts, starts, types, in, counts, starts, types, graph);
    for (int i = 0; i < 2; i++) CHECK_EQ(in[i], 100 * sources[i] + rank);
    free(out);
}

static void distributed(void) {
    MPI_Comm graph;
    int next[2] = {(rank + 1) % size, (rank + 2) % size}, weights[2] = {5, 6}, degree = 2;
    int last[2] = {(rank + size - 1) % size, (rank + 2 * size - 2) % size};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, last, weights, 2, next, weights,
                                   MPI_INFO_NULL, 0, &graph);
    chain(graph);
    MPI_Comm_free(&graph);
    // The same, but each process names the edges of the next one.
    int origin = next[0], ends[2] = {(rank + 2) % size, (rank + 3) % size};
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &origin, &degree, ends, weights, MPI_INFO_NULL, 0,
                          &graph);
    chain(graph);
    MPI_Comm_free(&graph);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    ring();
    grid();
    small_grid();
    star();
    distributed();
    return finish();
}
