/* Writes and reads a file in many calls, of which the machine lets some fail. Each call that reports success has moved
   all of its bytes, and each collective one ends alike at all ranks.

   failing NAME RANGE BLOCK CALLS [SIGN]: each rank writes CALLS times RANGE bytes in blocks of BLOCK, which alternate
   with those of other ranks, and reads them. A BLOCK below 0 is as long, and has a gap behind it. Prints the first
   error, and how many calls went well. The file SIGN gets a letter for each call that went well. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, errors;

static int class_of(int code) {
    int error_class = -1;
    MPI_Error_class(code, &error_class);
    return error_class;
}

/* Whether a call went well, which it has to for all members or for none. */
static int agreed(int code, const char *what) {
    int mine = class_of(code), least, most;
    MPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (least != most) {
        printf("rank %d: %s ended with class %d, elsewhere with %d to %d\n", rank, what, mine, least, most);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (mine != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        int length = 0;
        MPI_Error_string(code, text, &length);
        if (rank == 0 && errors++ == 0) printf("%s: %s\n", what, text);
    }
    return mine == MPI_SUCCESS;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int range = atoi(argv[2]), block = abs(atoi(argv[3])), calls = atoi(argv[4]), well = 0;
    int apart = atoi(argv[3]) < 0 ? 2 * block : block;
    FILE *sign = argc > 5 && rank == 0 ? fopen(argv[5], "w") : NULL;
    unsigned char *out = malloc(range), *in = malloc(range);
    MPI_File file;
    MPI_Datatype blocks;
    MPI_Status status;
    if (!agreed(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open"))
        return MPI_Abort(MPI_COMM_WORLD, 4);
    MPI_Type_vector(1, block, block, MPI_BYTE, &blocks);
    MPI_Type_create_resized(blocks, 0, (MPI_Aint)apart * size, &blocks);
    MPI_Type_commit(&blocks);
    MPI_File_set_view(file, (MPI_Offset)rank * apart, MPI_BYTE, blocks, "native", MPI_INFO_NULL);
    for (int call = 0; call < calls; call++) {
        MPI_Count bytes = -1;
        for (int at = 0; at < range; at++) out[at] = (unsigned char)(rank + 3 * call + at % 253 + 1);
        if (!agreed(MPI_File_write_at_all(file, (MPI_Offset)call * range, out, range, MPI_BYTE, &status), "write"))
            continue;
        MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
        memset(in, 0, range);
        int read = agreed(MPI_File_read_at_all(file, (MPI_Offset)call * range, in, range, MPI_BYTE, &status), "read");
        if (bytes != range || (read && memcmp(in, out, range) != 0)) {
            printf("rank %d: call %d is said to have gone well\n", rank, call);
            fflush(stdout);
            MPI_Abort(MPI_COMM_WORLD, 5);
        }
        well += read;
        if (sign && read) {
            fputc('x', sign);
            fflush(sign);
        }
    }
    /* Each for itself. */
    int code = MPI_File_write_at(file, (MPI_Offset)calls * range, out, range, MPI_BYTE, &status);
    MPI_Count bytes = -1;
    MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    if ((code == MPI_SUCCESS) != (bytes == range)) {
        printf("rank %d: class %d and %lld bytes\n", rank, class_of(code), (long long)bytes);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 6);
    }
    int failed = code != MPI_SUCCESS, all = 0;
    MPI_Reduce(&failed, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Type_free(&blocks);
    agreed(MPI_File_sync(file), "sync");
    agreed(MPI_File_close(&file), "close");
    if (rank == 0) printf("%d of %d calls went well, %d of %d ranks' own failed\n", well, calls, all, size);
    MPI_Finalize();
    return 0;
}
