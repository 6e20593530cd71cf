/* What a rank has printed when it, or another rank, ends the job: `prints HOW [SIGN]`, on 2 ranks or more. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The compiler does not know that. */
static char *volatile nowhere = (char *)16;

static int is(const char *how, const char *wanted)
{
    return strcmp(how, wanted) == 0;
}

/* Whether a line is under way, too, when rank 0 ends so. */
static void end(const char *how, char **words)
{
    static char buffer[1 << 20];
    if (is(how, "another") || is(how, "another_segv"))
        stdout = fdopen(dup(1), "w");
    if (is(how, "closed"))
        fclose(stdout), stdout = fdopen(dup(2), "w"), setvbuf(stdout, NULL, _IOFBF, 4096);
    if (is(how, "device"))
        fprintf(fopen("/dev/stdout", "w"), "whole\nbegun"), MPI_Abort(MPI_COMM_WORLD, 3);
    if (is(how, "log"))
        fprintf(fopen(words[2], "w"), "whole\nbegun"), MPI_Abort(MPI_COMM_WORLD, 3);
    if (is(how, "full"))
        setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    printf("whole\nbegun");
    if (is(how, "abort") || is(how, "full") || is(how, "another") || is(how, "closed"))
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (is(how, "error"))
        MPI_Send(buffer, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    if (is(how, "segv") || is(how, "another_segv"))
        *(volatile int *)nowhere = 1;
    if (is(how, "raise"))
        raise(SIGSEGV);
    if (is(how, "cabort"))
        abort();
    if (is(how, "locked")) {
        /* As if another call of this thread were on its way. */
        flockfile(stdout);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (is(how, "exit"))
        exit(3);
    if (is(how, "return"))
        _Exit((fflush(stdout), 0));
}

/* One of MPICH's own functions, which its header has and the standard's has not. */
int MPIX_Type_iov_len(MPI_Datatype datatype, MPI_Count bytes, MPI_Count *count, MPI_Count *used);

int main(int argc, char **argv)
{
    int rank;
    const char *how = argv[1];
    if (is(how, "chosen"))
        setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    if (is(how, "another_many"))
        stdout = fdopen(dup(1), "w");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (is(how, "chosen") || is(how, "habit"))
        printf("lines %d\n", __flbf(stdout) != 0);
    else if (is(how, "careless_many"))
        /* As the runtimes of other languages may: nobody learns of an error. */
        for (long line = 0; line < atol(argv[2]); line++) {
            if (write(1, "a line of text\n", 15) != 15)
                continue;
        }
    else if (strstr(how, "many"))
        for (long line = 0; line < atol(argv[2]); line++)
            printf("rank %d prints line %ld\n", rank, line);
    else
        printf("rank %d: before\n", rank);
    if (is(how, "wait"))
        while (access(argv[2], F_OK) != 0)
            usleep(1000);
    MPI_Barrier(MPI_COMM_WORLD);
    if (is(how, "missing")) {
        MPI_Count count, bytes;
        MPIX_Type_iov_len(MPI_INT, 1, &count, &bytes);
    }
    if (is(how, "term"))
        pause();
    if (rank == 0 && !is(how, "careless_many"))
        end(how, argv);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
