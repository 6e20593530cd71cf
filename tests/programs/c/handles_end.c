// One member has as many communicators, or windows, as it may: each call that would make one more fails at all members,
// and nothing is left of it. Where that member gets none, the call succeeds.
//# ranks: 3
//# abi: mpich mpi5
//# settings: COHORT_HANDLES_MAX=12
#include "check.h"
enum { MOST = 12 };
static MPI_Comm world = MPI_COMM_WORLD, filling[MOST];
static int filled;

static int last(void) { return rank == size - 1; }

/* The last member fills its table up. */
static void fill(void) {
    if (!last()) return;
    while (MPI_Comm_dup(MPI_COMM_SELF, &filling[filled]) == MPI_SUCCESS) filled++;
    CHECK(filled > 0);
}

static void drain(void) {
    while (filled > 0) MPI_Comm_free(&filling[--filled]);
}

/* Everybody hears of it before anybody goes on. */
static void refused(int code, int line) {
    if (class_of(code) != MPI_ERR_OTHER) fprintf(stderr, "rank %d: line %d: class %d\n", rank, line, class_of(code));
    CHECK(class_of(code) == MPI_ERR_OTHER);
    MPI_Barrier(world);
}
#define REFUSED(call) refused(call, __LINE__)
#define FINE(call) CHECK_EQ(class_of(call), MPI_SUCCESS)

/* The error comes from the call itself at the one that has no handle, else with the request. */
static int idup(MPI_Comm comm) {
    MPI_Comm copy;
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Comm_idup(comm, &copy, &request);
    CHECK((code != MPI_SUCCESS) == last());
    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

static void of_one_group(MPI_Group all, MPI_Group only_last) {
    MPI_Comm made;
    int next[1] = {(rank + 1) % size}, one[1] = {1}, weights[1] = {1};
    REFUSED(MPI_Comm_dup(world, &made));
    REFUSED(MPI_Comm_dup_with_info(world, MPI_INFO_NULL, &made));
    REFUSED(idup(world));
    REFUSED(MPI_Comm_split(world, rank, 0, &made));
    REFUSED(MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made));
    REFUSED(MPI_Comm_create(world, all, &made));
    REFUSED(MPI_Comm_create(world, only_last, &made));
    REFUSED(MPI_Comm_create_group(world, all, 1, &made));
    REFUSED(MPI_Cart_create(world, 1, &size, &(int){0}, 0, &made));
    REFUSED(MPI_Graph_create(world, size, (int[]){1, 1, 1}, &(int){0}, 0, &made));
    REFUSED(MPI_Dist_graph_create_adjacent(world, 1, next, weights, 1, next, weights, MPI_INFO_NULL, 0,
                                           &made));
    REFUSED(MPI_Dist_graph_create(world, 1, &rank, one, next, weights, MPI_INFO_NULL, 1, &made));
    /* Who gets none needs no handle. */
    FINE(MPI_Comm_split(world, last() ? MPI_UNDEFINED : 0, 0, &made));
    CHECK((made == MPI_COMM_NULL) == last());
    if (!last()) MPI_Comm_free(&made);
    FINE(MPI_Cart_create(world, 1, &(int){size - 1}, &(int){0}, 0, &made));
    CHECK((made == MPI_COMM_NULL) == last());
    if (!last()) MPI_Comm_free(&made);
}

static void of_two_groups(MPI_Comm half, MPI_Comm inter, MPI_Comm cart) {
    MPI_Comm made;
    int leader = last() ? 0 : size - 1;
    REFUSED(MPI_Comm_dup(inter, &made));
    REFUSED(idup(inter));
    REFUSED(MPI_Comm_split(inter, 0, 0, &made));
    REFUSED(MPI_Intercomm_merge(inter, 0, &made));
    REFUSED(MPI_Intercomm_create(half, 0, world, leader, 3, &made));
    REFUSED(MPI_Cart_sub(cart, &(int){1}, &made));
}

static void without_a_parent(MPI_Group all) {
    MPI_Comm made;
    MPI_Group ours, theirs;
    int others = size - 1, list[3] = {0, 1, size - 1};
    REFUSED(MPI_Comm_create_from_group(all, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
    MPI_Group_incl(all, 1, &others, last() ? &ours : &theirs);
    MPI_Group_incl(all, size - 1, list, last() ? &theirs : &ours);
    REFUSED(MPI_Intercomm_create_from_groups(ours, 0, theirs, 0, "two", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
    MPI_Group_free(&ours);
    MPI_Group_free(&theirs);
}

static void windows(void) {
    MPI_Win own[MOST + 1], made;
    int *memory, count = 0, word;
    if (last()) while (MPI_Win_create(&word, 4, 1, MPI_INFO_NULL, MPI_COMM_SELF, &own[count]) == MPI_SUCCESS) count++;
    CHECK(!last() || count == MOST);
    REFUSED(MPI_Win_create(&word, 4, 1, MPI_INFO_NULL, world, &made));
    REFUSED(MPI_Win_allocate(4, 1, MPI_INFO_NULL, world, &memory, &made));
    REFUSED(MPI_Win_create_dynamic(MPI_INFO_NULL, world, &made));
    while (count > 0) MPI_Win_free(&own[--count]);
    FINE(MPI_Win_allocate(4, 1, MPI_INFO_NULL, world, &memory, &made));
    MPI_Win_free(&made);
}

/* What there is works, and with a handle free all is as before. */
static void afterwards(MPI_Comm inter, MPI_Group all) {
    MPI_Comm made;
    int sum;
    drain();
    FINE(MPI_Comm_dup(inter, &made));
    MPI_Comm_free(&made);
    for (int round = 0; round < 3 * MOST; round++) {
        if (round % 2) FINE(MPI_Comm_dup(world, &made));
        else FINE(MPI_Comm_create_from_group(all, "again", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
        MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, made);
        CHECK_EQ(sum, size * round);
        MPI_Comm_free(&made);
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm half, inter, cart;
    MPI_Group all, only_last;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_group(world, &all);
    MPI_Group_incl(all, 1, &(int){size - 1}, &only_last);
    MPI_Comm_split(world, last(), 0, &half);
    MPI_Intercomm_create(half, 0, world, last() ? 0 : size - 1, 2, &inter);
    MPI_Cart_create(world, 1, &size, &(int){0}, 0, &cart);
    fill();
    of_one_group(all, only_last);
    of_two_groups(half, inter, cart);
    without_a_parent(all);
    windows();
    afterwards(inter, all);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    MPI_Comm_free(&cart);
    MPI_Group_free(&all);
    MPI_Group_free(&only_last);
    return finish();
}
