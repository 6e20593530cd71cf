// A program may add and remove as many error classes, codes and texts as it likes: each takes the same time.
//# ranks: 1
#include "check.h"
enum { MANY = 200000 };
static int classes[MANY], codes[MANY];

static int last_used(void) {
    int *last, flag;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag);
    CHECK(flag);
    return *last;
}

static void add_all(void) {
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(MPI_Add_error_class(&classes[i]), MPI_SUCCESS);
        CHECK_EQ(MPI_Add_error_code(classes[i], &codes[i]), MPI_SUCCESS);
        CHECK_EQ(MPI_Add_error_string(codes[i], "one of many"), MPI_SUCCESS);
        CHECK_EQ(last_used(), codes[i]);
    }
}

static void remove_one(int i) {
    CHECK(MPI_Remove_error_class(classes[i]) != MPI_SUCCESS);
    CHECK(MPI_Remove_error_code(codes[i]) != MPI_SUCCESS);
    CHECK_EQ(MPI_Remove_error_string(codes[i]), MPI_SUCCESS);
    CHECK_EQ(MPI_Remove_error_code(codes[i]), MPI_SUCCESS);
    CHECK(MPI_Remove_error_code(codes[i]) != MPI_SUCCESS);
    CHECK_EQ(MPI_Remove_error_class(classes[i]), MPI_SUCCESS);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int before = last_used();
    add_all();
    for (int i = 0; i < MANY; i++) remove_one(i);
    CHECK_EQ(last_used(), before);
    add_all();
    for (int i = MANY; i-- > 1;) {
        remove_one(i);
        CHECK_EQ(last_used(), codes[i - 1]);
    }
    CHECK_EQ(class_of(codes[0]), classes[0]);
    // One that comes and goes beside many that are gone.
    for (int i = 0; i < MANY; i++) {
        int class;
        MPI_Add_error_class(&class);
        CHECK_EQ(last_used(), class);
        MPI_Remove_error_class(class);
    }
    remove_one(0);
    CHECK_EQ(last_used(), before);
    return finish();
}
