// Messages of 0 to 2500 bytes, of blocking and nonblocking sends in turn, to all other ranks at once: each comes whole
// and in its order, into receives that wait for it, that come late, and that take any source.
//# ranks: 2 3 6
//# progress: none steal thread
#include "check.h"
enum { MESSAGES = 3000, LONGEST = 2500, WINDOW = 100 };

static unsigned next(unsigned *state) { return (*state = *state * 1664525u + 1013904223u) >> 8; }

/* Mostly so short that two share a cache line; a fifth of all follow each other and need blocks of the sender's. */
static int length_of(unsigned *state, int number) {
    int any = next(state) % (LONGEST + 1);
    if (number % 1000 >= 800) return any;
    return next(state) % 5 ? any % 14 : any % 300;
}

static void fill(unsigned char *data, int length, int sender, int number) {
    for (int byte = 0; byte < length; byte++) data[byte] = sender * 31 + number * 7 + byte;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    static unsigned char out[WINDOW][LONGEST], in[LONGEST], expected[LONGEST];
    MPI_Request requests[WINDOW];
    for (int root = 0; root < size; root++) {
        /* The root sends each message to all others; all know the lengths. */
        unsigned lengths = 17 + root, ways = 99 * root;
        int pending = 0;
        for (int number = 0; number < MESSAGES; number++) {
            int length = length_of(&lengths, number);
            if (rank == root) {
                for (int other = 0; other < size; other++) {
                    if (other == root) continue;
                    if (pending == WINDOW) {
                        MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
                        pending = 0;
                    }
                    fill(out[pending], length, root, number);
                    if (next(&ways) % 4 == 0) {
                        MPI_Send(out[pending], length, MPI_BYTE, other, number % 7, MPI_COMM_WORLD);
                    } else {
                        MPI_Isend(out[pending], length, MPI_BYTE, other, number % 7, MPI_COMM_WORLD,
                                  &requests[pending]);
                        pending++;
                    }
                }
                continue;
            }
            MPI_Status status;
            int received, from = number % 3 ? root : MPI_ANY_SOURCE;
            memset(in, 0xee, sizeof in);
            if (number % 5 == 0) {
                MPI_Request request;
                MPI_Irecv(in, LONGEST, MPI_BYTE, from, number % 7, MPI_COMM_WORLD, &request);
                MPI_Wait(&request, &status);
            } else if (number % 5 == 1) {
                MPI_Probe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
                CHECK(status.MPI_TAG == number % 7);
                MPI_Recv(in, LONGEST, MPI_BYTE, root, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            } else {
                MPI_Recv(in, LONGEST, MPI_BYTE, from, number % 7, MPI_COMM_WORLD, &status);
            }
            MPI_Get_count(&status, MPI_BYTE, &received);
            fill(expected, length, root, number);
            CHECK(received == length && status.MPI_SOURCE == root && status.MPI_TAG == number % 7);
            CHECK(memcmp(in, expected, length) == 0);
            CHECK(length == LONGEST || in[length] == 0xee);
        }
        if (rank == root) MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
