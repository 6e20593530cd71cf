// Predefined attributes, and user attributes with their copy and delete callbacks.
//# ranks: 1 2
//# abi: mpich, mpi5, openmpi
#include "check.h"
static int copies, deletes;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key;
    CHECK(*(int *)extra == 99);
    copies++;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int drop(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    deletes++;
    return MPI_SUCCESS;
}

static int refuse(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    return MPI_ERR_OTHER;
}

static int order[4], ends;

/* The order of deletion, and that MPI still works while MPI_Finalize deletes. */
static int remember(MPI_Comm comm, int key, void *value, void *extra) {
    int finalized = 1, members = 0;
    (void)key, (void)extra;
    MPI_Finalized(&finalized);
    MPI_Comm_size(comm, &members);
    order[ends++] = finalized == 0 && members == 1 ? *(int *)value : -1;
    return MPI_SUCCESS;
}

/* Attributes of MPI_COMM_SELF that MPI_Finalize deletes, the latest first (MPI 11.2.4); the first one was set again
   last, two belong to keyvals that are freed already. */
static void leave_three(void) {
    static int numbers[] = {1, 2, 3};
    int key[3];
    for (int i = 0; i < 3; i++) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, remember, &key[i], NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, key[i], &numbers[i]);
    }
    MPI_Comm_set_attr(MPI_COMM_SELF, key[0], &numbers[0]);
    for (int i = 0; i < 3; i += 2) MPI_Comm_free_keyval(&key[i]);
    CHECK_EQ(ends, 1);
}

/* A new keyval may get the number of a freed one, but not its attributes. */
static void freed_keyvals_keep_their_attributes(void) {
    static int first;
    int old, new, flag;
    void *value;
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_SELF, &twin);
    deletes = 0;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, drop, &old, NULL);
    MPI_Comm_set_attr(twin, old, &first);
    MPI_Comm_free_keyval(&old);
    CHECK_EQ(deletes, 0);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &new, NULL);
    MPI_Comm_get_attr(twin, new, &value, &flag);
    CHECK(!flag);
    MPI_Comm_free_keyval(&new);
    MPI_Comm_free(&twin);
    CHECK_EQ(deletes, 1);
}

/* Frees the keyval of the attribute that is being deleted, which others may have freed before. */
static int free_again(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)value;
    CHECK(*(int *)extra == key);
    CHECK_EQ(MPI_Comm_free_keyval(&key), MPI_SUCCESS);
    CHECK_EQ(key, MPI_KEYVAL_INVALID);
    deletes++;
    return MPI_SUCCESS;
}

/* As long as an attribute has a freed keyval, its number is good for all that MPI does with keyvals (MPI 7.7.2). */
static void freed_keyvals_serve_their_attributes(void) {
    enum { MANY = 100 };
    static int numbers[MANY];
    MPI_Comm twins[2];
    void *value;
    int flag, key, saved;
    for (int i = 0; i < 2; i++) MPI_Comm_dup(MPI_COMM_SELF, &twins[i]);
    MPI_Comm_set_errhandler(twins[0], MPI_ERRORS_RETURN);
    deletes = 0;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, drop, &key, NULL);
    saved = key;
    for (int i = 0; i < 2; i++) MPI_Comm_set_attr(twins[i], key, &numbers[i]);
    for (int i = 0; i < 3; i++) {
        key = saved;
        MPI_Comm_free_keyval(&key);
        CHECK_EQ(key, MPI_KEYVAL_INVALID);
    }
    MPI_Comm_get_attr(twins[0], saved, &value, &flag);
    CHECK(flag && value == &numbers[0]);
    MPI_Comm_delete_attr(twins[0], saved);
    CHECK_EQ(deletes, 1);
    MPI_Comm_get_attr(twins[1], saved, &value, &flag);
    CHECK(flag && value == &numbers[1]);
    MPI_Comm_free(&twins[1]);
    CHECK_EQ(deletes, 2);
    CHECK_EQ(class_of(MPI_Comm_get_attr(twins[0], saved, &value, &flag)), MPI_ERR_KEYVAL);
    // Many of them, whose numbers are not given to others before their attributes are gone.
    for (int round = 0; round < 3; round++) {
        deletes = 0;
        for (int i = 0; i < MANY; i++) {
            MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_again, &numbers[i], &numbers[i]);
            MPI_Comm_set_attr(twins[0], numbers[i], &numbers[i]);
            if (i % 2) {
                key = numbers[i];
                MPI_Comm_free_keyval(&key);
            }
        }
        for (int i = 0; i < MANY; i++) {
            for (int j = 0; j < i; j++) CHECK(numbers[i] != numbers[j]);
            MPI_Comm_get_attr(twins[0], numbers[i], &value, &flag);
            CHECK(flag && value == &numbers[i]);
        }
        for (int i = 0; i < MANY; i++)
            if (round < 2 || i % 3 == 0) MPI_Comm_delete_attr(twins[0], numbers[i]);
    }
    MPI_Comm_free(&twins[0]);
    CHECK_EQ(deletes, MANY);
}

/* MPI_WTIME_IS_GLOBAL is the same at all ranks, and 1 only if all are on one node. */
static void one_clock_is_global(int is_global) {
    int least, most, here, all;
    MPI_Comm node;
    MPI_Allreduce(&is_global, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&is_global, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK_EQ(least, most);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &here);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    CHECK_EQ(is_global, here == all);
    MPI_Comm_free(&node);
}

int main(int argc, char **argv) {
    static char space[2];
    int extra = 99, key, stubborn, flag, *bound;
    void *value;
    MPI_Comm twin;
    start(&argc, &argv);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
    CHECK(flag && *bound >= 32767);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &bound, &flag);
    CHECK(flag);
    one_clock_is_global(*bound);

    MPI_Comm_create_keyval(copy, drop, &key, &extra);
    MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag);
    CHECK(!flag);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, space);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_get_attr(twin, key, &value, &flag);
    CHECK(flag && value == space + 1);
    CHECK_EQ(copies, 1);
    MPI_Comm_set_attr(twin, key, space);
    CHECK_EQ(deletes, 1);
    MPI_Comm_free(&twin);
    CHECK_EQ(deletes, 2);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
    CHECK_EQ(deletes, 3);
    MPI_Comm_free_keyval(&key);
    CHECK_EQ(key, MPI_KEYVAL_INVALID);

    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse, &stubborn, NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &twin);
    MPI_Comm_set_errhandler(twin, MPI_ERRORS_RETURN);
    MPI_Comm_set_attr(twin, stubborn, space);
    CHECK(MPI_Comm_delete_attr(twin, stubborn) != MPI_SUCCESS);
    freed_keyvals_keep_their_attributes();
    freed_keyvals_serve_their_attributes();
    leave_three();
    MPI_Finalize();
    static const int expected[] = {1, 1, 3, 2};
    for (int i = 0; i < 4; i++) {
        if (order[i] != expected[i]) {
            fprintf(stderr, "rank %d: deletion %d was of attribute %d\n", rank, i, order[i]);
            return 1;
        }
    }
    if (rank == 0) puts("passed");
    return 0;
}
