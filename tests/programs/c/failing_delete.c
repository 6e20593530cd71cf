// A delete function that fails: the call that frees the object returns its error, where the object's error handler, or
// that of MPI_COMM_WORLD for types, says so. The object lives on, and is freed when the function lets it.
//# ranks: 1 2
#include "check.h"
static int fails = 1, calls;

static int of_comm(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    calls++;
    return fails ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int of_win(MPI_Win win, int key, void *value, void *extra) {
    (void)win;
    return of_comm(MPI_COMM_NULL, key, value, extra);
}

static int of_type(MPI_Datatype type, int key, void *value, void *extra) {
    (void)type;
    return of_comm(MPI_COMM_NULL, key, value, extra);
}

static void communicator(int (*release)(MPI_Comm *), MPI_Errhandler handler) {
    int key, value;
    MPI_Comm comm;
    fails = 1;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, of_comm, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Comm_set_attr(comm, key, NULL);
    CHECK_EQ(class_of(release(&comm)), MPI_ERR_OTHER);
    CHECK(comm != MPI_COMM_NULL);
    MPI_Allreduce(&size, &value, 1, MPI_INT, MPI_SUM, comm);
    CHECK_EQ(value, size * size);
    CHECK_EQ(class_of(MPI_Comm_delete_attr(comm, key)), MPI_ERR_OTHER);
    fails = 0;
    CHECK_EQ(release(&comm), MPI_SUCCESS);
    CHECK(comm == MPI_COMM_NULL);
    MPI_Comm_free_keyval(&key);
}

// One member's function fails, and it calls again: the others wait for that.
static void of_one_member(void) {
    int key;
    MPI_Comm comm;
    fails = 1;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, of_comm, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (rank == 0) {
        MPI_Comm_set_attr(comm, key, NULL);
        CHECK_EQ(class_of(MPI_Comm_disconnect(&comm)), MPI_ERR_OTHER);
        fails = 0;
    }
    CHECK_EQ(MPI_Comm_disconnect(&comm), MPI_SUCCESS);
    CHECK(comm == MPI_COMM_NULL);
    MPI_Comm_free_keyval(&key);
}

static void window(void) {
    int key, memory = 0;
    MPI_Win win;
    fails = 1;
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, of_win, &key, NULL);
    MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_set_attr(win, key, NULL);
    CHECK_EQ(class_of(MPI_Win_free(&win)), MPI_ERR_OTHER);
    CHECK(win != MPI_WIN_NULL);
    MPI_Win_fence(0, win);
    MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    CHECK_EQ(memory, (rank + size - 1) % size);
    fails = 0;
    CHECK_EQ(MPI_Win_free(&win), MPI_SUCCESS);
    MPI_Win_free_keyval(&key);
}

static void datatype(void) {
    int key;
    MPI_Datatype type;
    fails = 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, of_type, &key, NULL);
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_set_attr(type, key, NULL);
    CHECK_EQ(class_of(MPI_Type_free(&type)), MPI_ERR_OTHER);
    CHECK(type != MPI_DATATYPE_NULL);
    fails = 0;
    CHECK_EQ(MPI_Type_free(&type), MPI_SUCCESS);
    MPI_Type_free_keyval(&key);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    communicator(MPI_Comm_free, MPI_ERRORS_RETURN);
    communicator(MPI_Comm_disconnect, MPI_ERRORS_RETURN);
    of_one_member();
    window();
    datatype();
    CHECK(calls >= 8);
    return finish();
}
