// Keys and values of an info are as long as the program's header says, and come back whole; longer ones are refused
// (MPI 4.1 10).
//# ranks: 1
//# abi: mpich mpi5 openmpi
// One process, no message.
//# nodes: no
#include "check.h"

static char text[MPI_MAX_INFO_VAL + MPI_MAX_INFO_KEY + 1];

/* So many characters. */
static const char *of_length(int length) {
    memset(text, 'k', length);
    text[length] = '\0';
    return text;
}

int main(int argc, char **argv) {
    char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL];
    int count, flag, room = sizeof value;
    MPI_Info info;
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Info_create(&info);
    CHECK_EQ(class_of(MPI_Info_set(info, of_length(MPI_MAX_INFO_KEY), "long")), MPI_ERR_INFO_KEY);
    CHECK_EQ(class_of(MPI_Info_set(info, "long", of_length(MPI_MAX_INFO_VAL))), MPI_ERR_INFO_VALUE);
    CHECK_EQ(class_of(MPI_Info_delete(info, of_length(MPI_MAX_INFO_KEY))), MPI_ERR_INFO_KEY);
    MPI_Info_get_nkeys(info, &count);
    CHECK_EQ(count, 0);
    CHECK_EQ(MPI_Info_set(info, of_length(MPI_MAX_INFO_KEY - 1), "longest"), MPI_SUCCESS);
    key[MPI_MAX_INFO_KEY] = '!';
    MPI_Info_get_nthkey(info, 0, key);
    CHECK_EQ(key[MPI_MAX_INFO_KEY], '!');
    CHECK(strcmp(key, of_length(MPI_MAX_INFO_KEY - 1)) == 0);
    CHECK_EQ(MPI_Info_set(info, key, of_length(MPI_MAX_INFO_VAL - 1)), MPI_SUCCESS);
    MPI_Info_get_string(info, key, &room, value, &flag);
    CHECK(flag && strcmp(value, text) == 0);
    CHECK_EQ(room, MPI_MAX_INFO_VAL);
    MPI_Info_free(&info);
    return finish();
}
