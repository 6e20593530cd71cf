/* Known messages, waits and stages, for the report of COHORT_STATS. Rank 0 prints how long its receives took. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int MPIX_Section_begin(MPI_Comm comm, const char *label);
int MPIX_Section_end(MPI_Comm comm, const char *label);

enum { ROUNDS = 3, LATE_US = 50000 };

int main(int argc, char **argv)
{
    int rank;
    char buffer[1000] = {0};
    MPI_Comm rows;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &rows);
    MPI_Comm_set_name(rows, "rows");

    /* Rank 0 sends 3 messages of 1000 bytes, one of 8 ints, and a persistent one of 10 bytes twice. */
    MPIX_Section_begin(MPI_COMM_WORLD, "send");
    if (rank == 0) {
        for (int i = 0; i < ROUNDS; i++)
            MPI_Send(buffer, 1000, MPI_BYTE, 1, 1, rows);
        MPI_Isend(buffer, 8, MPI_INT, 1, 1, rows, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Send_init(buffer, 10, MPI_BYTE, 1, 1, rows, &request);
        for (int i = 0; i < 2; i++) {
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Request_free(&request);
        MPI_Send(buffer, 1000, MPI_BYTE, MPI_PROC_NULL, 1, rows);
    } else {
        for (int i = 0; i < ROUNDS + 3; i++)
            MPI_Recv(buffer, 1000, MPI_BYTE, 0, 1, rows, MPI_STATUS_IGNORE);
    }
    MPIX_Section_end(MPI_COMM_WORLD, "send");

    /* Rank 0 waits for rank 1 in a receive, in a wait, and in a barrier. */
    MPI_Pcontrol(2);
    if (rank == 0) {
        double start = MPI_Wtime();
        MPI_Recv(buffer, 1000, MPI_BYTE, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, (MPI_Status[1]){{0}});
        MPI_Irecv(buffer, 1000, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Barrier(rows);
        printf("waited %.0f us\n", (MPI_Wtime() - start) * 1e6);
    } else {
        usleep(LATE_US);
        MPI_Send(buffer, 100, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        usleep(LATE_US);
        MPI_Send(buffer, 100, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
        usleep(LATE_US);
        MPI_Barrier(rows);
    }
    MPI_Pcontrol(-2);

    /* Writes of 3 times 1000 bytes and of 10 ints, and a read of nothing. */
    MPI_File file;
    MPI_Status status;
    MPI_File_open(MPI_COMM_WORLD, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int i = 0; i < 3; i++)
        MPI_File_write(file, buffer, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_write_at_all(file, 0, buffer, 10, MPI_INT, &status);
    MPI_File_read_at(file, 0, buffer, 1000, MPI_BYTE, &status);
    MPI_File_close(&file);

    MPI_Pcontrol(0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(1);
    MPI_Comm_free(&rows);
    MPI_Finalize();
    return 0;
}
