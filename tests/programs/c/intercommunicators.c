// Intercommunicators: made from communicators and from groups, messages, collectives, dup, split, merge.
//# ranks: 2 3 8
//# abi: mpich, mpi5, openmpi
#include "check.h"

static int low, members, others, here;

static MPI_Comm between_halves(MPI_Comm *half) {
    MPI_Comm inter;
    MPI_Comm_split(MPI_COMM_WORLD, low, rank, half);
    int remote_leader = low ? size / 2 : 0;
    MPI_Intercomm_create(*half, 0, MPI_COMM_WORLD, remote_leader, 7, &inter);
    return inter;
}

static int first_of_others(void) { return low ? size / 2 : 0; }

static int sum_of_others(void) {
    int sum = 0;
    for (int r = 0; r < others; r++) sum += first_of_others() + r;
    return sum;
}

static void inquiries(MPI_Comm inter) {
    int flag, count, result, last;
    MPI_Group group, world;
    MPI_Comm_test_inter(inter, &flag);
    CHECK(flag);
    MPI_Comm_test_inter(MPI_COMM_WORLD, &flag);
    CHECK(!flag);
    MPI_Comm_size(inter, &count);
    CHECK_EQ(count, members);
    MPI_Comm_remote_size(inter, &count);
    CHECK_EQ(count, others);
    MPI_Comm_remote_group(inter, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    last = others - 1;
    MPI_Group_translate_ranks(group, 1, &last, world, &result);
    CHECK_EQ(result, first_of_others() + last);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    MPI_Comm_compare(inter, MPI_COMM_WORLD, &result);
    CHECK_EQ(result, MPI_UNEQUAL);
}

// Everyone sends its world rank to one member of the other group and receives from any.
static void messages(MPI_Comm inter) {
    int received, to = here % others;
    MPI_Request request;
    MPI_Isend(&rank, 1, MPI_INT, to, 5, inter, &request);
    for (int from = 0; from < others; from++) {
        if (from % members != here) continue;
        MPI_Status status;
        MPI_Recv(&received, 1, MPI_INT, MPI_ANY_SOURCE, 5, inter, &status);
        CHECK_EQ(received, first_of_others() + status.MPI_SOURCE);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void collectives(MPI_Comm inter) {
    int all[64], out[64], value, sum;
    MPI_Barrier(inter);
    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, inter);
    for (int r = 0; r < others; r++) CHECK_EQ(all[r], first_of_others() + r);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK_EQ(sum, sum_of_others());
    for (int r = 0; r < others; r++) out[r] = 100 * rank + r;
    MPI_Alltoall(out, 1, MPI_INT, all, 1, MPI_INT, inter);
    for (int r = 0; r < others; r++) CHECK_EQ(all[r], 100 * (first_of_others() + r) + here);

    // The last member of the upper group is the root.
    int last = others - 1, root = low ? last : here == members - 1 ? MPI_ROOT : MPI_PROC_NULL;
    value = rank;
    MPI_Bcast(&value, 1, MPI_INT, root, inter);
    CHECK_EQ(value, low ? size - 1 : rank);
    sum = -1;
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, root, inter);
    CHECK_EQ(sum, root == MPI_ROOT ? sum_of_others() : -1);
    MPI_Gather(&rank, 1, MPI_INT, all, 1, MPI_INT, root, inter);
    if (root == MPI_ROOT)
        for (int r = 0; r < others; r++) CHECK_EQ(all[r], r);
    for (int r = 0; r < others; r++) out[r] = 10 * r;
    MPI_Scatter(out, 1, MPI_INT, &value, 1, MPI_INT, root, inter);
    if (low) CHECK_EQ(value, 10 * here);
}

// Both groups contribute and get 12 elements, in blocks that differ.
static void reduce_scatter(MPI_Comm inter) {
    int counts[64], values[12], result[12], start = 0;
    for (int r = 0; r < members; r++) counts[r] = 12 / members + (r < 12 % members);
    for (int r = 0; r < here; r++) start += counts[r];
    for (int i = 0; i < 12; i++) values[i] = i;
    MPI_Reduce_scatter(values, result, counts, MPI_INT, MPI_SUM, inter);
    for (int i = 0; i < counts[here]; i++) CHECK_EQ(result[i], others * (start + i));
}

// Long operands take another path than those that fit in a cache line or two.
static void long_operands(MPI_Comm inter) {
    enum { LENGTH = 50000 };
    double *values = malloc(2 * LENGTH * sizeof *values), *sums = values + LENGTH;
    for (int i = 0; i < LENGTH; i++) values[i] = rank + i;
    MPI_Allreduce(values, sums, LENGTH, MPI_DOUBLE, MPI_SUM, inter);
    for (int i = 0; i < LENGTH; i += 777) CHECK(sums[i] == sum_of_others() + (double)others * i);
    free(values);
}

static void merged(MPI_Comm inter) {
    MPI_Comm both;
    int there, count, sum;
    // The lower half asks to come last.
    MPI_Intercomm_merge(inter, low, &both);
    MPI_Comm_rank(both, &there);
    MPI_Comm_size(both, &count);
    CHECK_EQ(count, size);
    CHECK_EQ(there, low ? others + here : here);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, both);
    CHECK_EQ(sum, size * (size - 1) / 2);
    MPI_Comm_free(&both);
}

static void derived(MPI_Comm inter) {
    MPI_Comm twin, part;
    MPI_Request request;
    int result, count;
    MPI_Comm_dup(inter, &twin);
    MPI_Comm_compare(inter, twin, &result);
    CHECK_EQ(result, MPI_CONGRUENT);
    messages(twin);
    collectives(twin);
    MPI_Comm_free(&twin);
    MPI_Comm_idup(inter, &twin, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    collectives(twin);
    MPI_Comm_disconnect(&twin);
    // The first members of both groups only.
    MPI_Comm_split(inter, here == 0 ? 3 : MPI_UNDEFINED, 0, &part);
    CHECK((part == MPI_COMM_NULL) == (here != 0));
    if (part != MPI_COMM_NULL) {
        MPI_Comm_remote_size(part, &count);
        CHECK_EQ(count, 1);
        MPI_Allreduce(&rank, &count, 1, MPI_INT, MPI_SUM, part);
        CHECK_EQ(count, first_of_others());
        MPI_Comm_free(&part);
    }
}

static void from_groups(void) {
    MPI_Group world, lower, upper;
    MPI_Comm inter;
    int ranges[2][3] = {{0, size / 2 - 1, 1}, {size / 2, size - 1, 1}};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, &ranges[0], &lower);
    MPI_Group_range_incl(world, 1, &ranges[1], &upper);
    MPI_Intercomm_create_from_groups(low ? lower : upper, 0, low ? upper : lower, 0,
                                     "org.cohort.halves", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL,
                                     &inter);
    inquiries(inter);
    messages(inter);
    collectives(inter);
    MPI_Comm_free(&inter);
    MPI_Group_free(&world);
    MPI_Group_free(&lower);
    MPI_Group_free(&upper);
}

// What only the leaders can see to be wrong, all of their groups are told.
static void refused(MPI_Comm half) {
    MPI_Comm inter = MPI_COMM_WORLD;
    MPI_Group mine;
    int class;
    MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size / 2 : 0, -3, &inter), &class);
    CHECK_EQ(class, MPI_ERR_TAG);
    MPI_Error_class(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, size, 3, &inter), &class);
    CHECK_EQ(class, MPI_ERR_RANK);
    MPI_Comm_group(half, &mine);
    MPI_Error_class(MPI_Intercomm_create_from_groups(mine, 0, MPI_GROUP_NULL, 0, low ? "l" : "h", MPI_INFO_NULL,
                                                     MPI_ERRORS_RETURN, &inter), &class);
    CHECK_EQ(class, MPI_ERR_GROUP);
    MPI_Group_free(&mine);
}

int main(int argc, char **argv) {
    MPI_Comm half, inter;
    start(&argc, &argv);
    low = rank < size / 2;
    members = low ? size / 2 : size - size / 2;
    others = size - members;
    here = low ? rank : rank - size / 2;
    inter = between_halves(&half);
    inquiries(inter);
    messages(inter);
    collectives(inter);
    reduce_scatter(inter);
    long_operands(inter);
    merged(inter);
    derived(inter);
    from_groups();
    refused(half);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    return finish();
}
