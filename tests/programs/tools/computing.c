/* `computing FILE SECONDS`: rank 0 sends more than sockets hold to rank 1, and both compute for so long before they
 * look at MPI again. Makes FILE when they begin to compute, and verifies what has come. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { LENGTH = 60 << 10, MESSAGES = 64 };

/* Mostly asleep, which is the same to MPI: no call of it is made. Time is the subject here. */
static void compute(double seconds) {
    double end = MPI_Wtime() + seconds;
    while (MPI_Wtime() < end) {
        for (volatile int step = 0; step < 100000; step++)
            ;
        usleep(20000);
    }
}

int main(int argc, char **argv) {
    int rank;
    char *data = malloc(LENGTH * MESSAGES);
    MPI_Request requests[MESSAGES];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(data, rank + 1, LENGTH * MESSAGES);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int message = 0; rank == 0 && message < MESSAGES; message++)
        MPI_Isend(data + message * LENGTH, LENGTH, MPI_CHAR, 1, message, MPI_COMM_WORLD,
                  &requests[message]);
    if (rank == 0) fclose(fopen(argv[1], "w"));
    compute(atof(argv[2]));
    for (int message = 0; rank == 1 && message < MESSAGES; message++) {
        char *place = data + message * LENGTH;
        MPI_Recv(place, LENGTH, MPI_CHAR, 0, message, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int byte = 0; byte < LENGTH; byte++)
            if (place[byte] != 1) MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (rank == 0) MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) puts("all came");
    MPI_Finalize();
    free(data);
    return 0;
}
