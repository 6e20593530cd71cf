// Dup, split, create and free: separate contexts, ranks by key, no leak over many rounds.
//# ranks: 1 2 4 8
//# progress: steal, none
//# nodes: no
// (It takes all of the world to share one node's memory.)
#include "check.h"

static void contexts_do_not_mix(void) {
    MPI_Comm twin;
    int out[2] = {1, 2}, first, second, result, right = (rank + 1) % size;
    MPI_Request requests[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_compare(MPI_COMM_WORLD, twin, &result);
    CHECK_EQ(result, MPI_CONGRUENT);
    MPI_Isend(&out[0], 1, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&out[1], 1, MPI_INT, right, 1, twin, &requests[1]);
    MPI_Recv(&second, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, twin, MPI_STATUS_IGNORE);
    MPI_Recv(&first, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(first == 1 && second == 2);
    MPI_Comm_free(&twin);
    CHECK(twin == MPI_COMM_NULL);
}

static void split_by_parity(void) {
    MPI_Comm half;
    int there, members, sum, expected = 0;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_rank(half, &there);
    MPI_Comm_size(half, &members);
    CHECK_EQ(members, (size + 1 - rank % 2) / 2);
    CHECK_EQ(there, members - 1 - rank / 2);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
    for (int r = rank % 2; r < size; r += 2) expected += r;
    CHECK_EQ(sum, expected);
    MPI_Comm_free(&half);

    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? 0 : MPI_UNDEFINED, 0, &half);
    CHECK((half == MPI_COMM_NULL) == (rank != 0));
    if (rank == 0) MPI_Comm_free(&half);
}

static void many_rounds(void) {
    for (int round = 0; round < 3000; round++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (round % 500 == 0) MPI_Barrier(comm);
        MPI_Comm_free(&comm);
    }
}

static void node_and_self(void) {
    MPI_Comm node;
    int members, mine = rank, sum;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &members);
    CHECK_EQ(members, size);
    MPI_Comm_free(&node);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    CHECK_EQ(sum, rank);
}

// Hardware that nobody knows gives no communicator; a narrower part is a true part.
static void by_hardware(void) {
    MPI_Comm part;
    MPI_Info info;
    char type[MPI_MAX_INFO_VAL + 1];
    int members, flag;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, rank, info, &part);
    MPI_Comm_size(part, &members);
    CHECK_EQ(members, size);
    MPI_Comm_free(&part);
    MPI_Info_set(info, "mpi_hw_resource_type", "hwloc://Unheard");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, rank, info, &part);
    CHECK(part == MPI_COMM_NULL);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, rank, info, &part);
    if (part != MPI_COMM_NULL) {
        MPI_Comm_size(part, &members);
        CHECK(members < size);
        MPI_Info_get(info, "mpi_hw_resource_type", MPI_MAX_INFO_VAL, type, &flag);
        CHECK(flag && strcmp(type, "hwloc://Unheard") != 0);
        MPI_Comm_free(&part);
    }
    MPI_Info_set(info, "mpi_pset_name", "mpi://SELF");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, rank, info, &part);
    MPI_Comm_size(part, &members);
    CHECK_EQ(members, 1);
    MPI_Comm_free(&part);
    // The names are URIs, whose scheme and authority have no case.
    MPI_Info_set(info, "mpi_pset_name", "MPI://world");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, rank, info, &part);
    MPI_Comm_size(part, &members);
    CHECK_EQ(members, size);
    MPI_Comm_free(&part);
    // Some of them want none.
    MPI_Comm_split_type(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &part);
    CHECK_EQ(part == MPI_COMM_NULL, rank == 0);
    if (part != MPI_COMM_NULL) {
        MPI_Comm_size(part, &members);
        CHECK_EQ(members, size - 1);
        MPI_Comm_free(&part);
    }
    MPI_Info_free(&info);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, rank, MPI_INFO_NULL, &part);
    CHECK(part == MPI_COMM_NULL);
}

// Members of both groups that share hardware, or a process set, are together.
static void of_two_groups(void) {
    MPI_Comm half, inter, part;
    MPI_Info info;
    int members, others, halves = (size + 1) / 2;
    if (size < 2) return;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 3, &inter);
    MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part);
    MPI_Comm_size(part, &members);
    MPI_Comm_remote_size(part, &others);
    CHECK_EQ(members, rank % 2 ? size - halves : halves);
    CHECK_EQ(others, rank % 2 ? halves : size - halves);
    MPI_Comm_free(&part);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_pset_name", "mpi://SELF");
    MPI_Comm_split_type(inter, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &part);
    CHECK(part == MPI_COMM_NULL);
    MPI_Info_free(&info);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    start(&argc, &argv);
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    CHECK(strcmp(name, "MPI_COMM_WORLD") == 0);
    contexts_do_not_mix();
    split_by_parity();
    many_rounds();
    node_and_self();
    by_hardware();
    of_two_groups();
    return finish();
}
