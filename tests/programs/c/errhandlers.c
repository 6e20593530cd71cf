// Errors go to the handler of their communicator; argument errors have the right class;
// user error classes, codes and texts.
//# ranks: 1 2
#include "check.h"
static int calls, last_code;

static void note(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    calls++;
    last_code = *code;
}

static void argument_errors(void) {
    int data = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK_EQ(class_of(MPI_Send(&data, -1, MPI_INT, 0, 0, MPI_COMM_WORLD)), MPI_ERR_COUNT);
    CHECK_EQ(class_of(MPI_Send(&data, 1, MPI_INT, size, 0, MPI_COMM_WORLD)), MPI_ERR_RANK);
    CHECK_EQ(class_of(MPI_Send(&data, 1, MPI_INT, 0, -5, MPI_COMM_WORLD)), MPI_ERR_TAG);
    CHECK_EQ(class_of(MPI_Send(&data, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD)), MPI_ERR_TYPE);
    CHECK_EQ(class_of(MPI_Bcast(&data, 1, MPI_INT, size, MPI_COMM_WORLD)), MPI_ERR_ROOT);
    CHECK_EQ(class_of(MPI_Allreduce(&data, &data + 1, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD)),
             MPI_ERR_OP);
}

static int file_calls;

static void note_file(MPI_File *file, int *code, ...) {
    CHECK(*file == MPI_FILE_NULL);
    file_calls++;
    last_code = *code;
}

/* Without files there still is MPI_FILE_NULL, whose handler new files inherit. */
static void file_handlers(void) {
    MPI_Errhandler handler, current;
    MPI_File_get_errhandler(MPI_FILE_NULL, &current);
    CHECK(current == MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&current);
    MPI_File_create_errhandler(note_file, &handler);
    CHECK_EQ(class_of(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler)), MPI_ERR_ERRHANDLER);
    MPI_File_set_errhandler(MPI_FILE_NULL, handler);
    MPI_File_get_errhandler(MPI_FILE_NULL, &current);
    CHECK(current == handler);
    MPI_Errhandler_free(&current);
    MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_NO_SUCH_FILE);
    CHECK_EQ(file_calls, 1);
    CHECK_EQ(class_of(last_code), MPI_ERR_NO_SUCH_FILE);
    CHECK_EQ(class_of(MPI_File_get_errhandler(MPI_FILE_NULL, NULL)), MPI_ERR_ARG);
    CHECK_EQ(file_calls, 2);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
}

int main(int argc, char **argv) {
    MPI_Errhandler handler, current;
    char text[MPI_MAX_ERROR_STRING];
    int length, mine, code, data = 0;
    start(&argc, &argv);
    argument_errors();
    file_handlers();

    MPI_Comm_create_errhandler(note, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &current);
    CHECK(current == handler);
    MPI_Errhandler_free(&current);
    MPI_Errhandler_free(&handler);
    MPI_Send(&data, 1, MPI_INT, 5, 0, MPI_COMM_SELF);
    CHECK_EQ(calls, 1);
    CHECK_EQ(class_of(last_code), MPI_ERR_RANK);
    MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_OTHER);
    CHECK_EQ(calls, 2);

    MPI_Add_error_class(&mine);
    MPI_Add_error_code(mine, &code);
    MPI_Add_error_string(code, "out of tea");
    MPI_Error_string(code, text, &length);
    CHECK(strcmp(text, "out of tea") == 0);
    // Latin-1, which is no UTF-8.
    CHECK_EQ(MPI_Add_error_string(code, "kein T\xe9"), MPI_SUCCESS);
    MPI_Error_string(code, text, &length);
    CHECK_EQ(length, 7);
    CHECK(strcmp(text, "kein T\xe9") == 0);
    CHECK_EQ(class_of(code), mine);
    MPI_Error_string(MPI_ERR_TRUNCATE, text, &length);
    CHECK(length > 0 && (int)strlen(text) == length);
    return finish();
}
