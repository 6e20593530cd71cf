// Alarm and profiling signals at a high rate, whose handlers use errno, the allocator and thread-local data,
// interrupt messages of all lengths. Between nodes, MPI runs C code of another namespace on this task: no
// handler may see that code's thread-local data.
//# ranks: 2 4
//# progress: steal, none
//# timeout: 60
#include "check.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
enum { ROUNDS = 60, LENGTH = 1 << 18 };

// Volatile, or the compiler knows what they hold and looks at nothing.
static __thread volatile unsigned long mine = 0x5eed;
static unsigned char *volatile allocated;
static volatile sig_atomic_t handled, foreign;
static unsigned char outgoing[LENGTH], incoming[LENGTH];

static void on_signal(int number) {
    (void)number;
    int before = errno;
    handled++;
    if (mine != 0x5eed) {
        // Another C library's thread-local data: its allocator would be asked too.
        foreign++;
        return;
    }
    // MPI never uses this program's allocator, no handler interrupts another, and nothing else runs while signals come.
    allocated = malloc(200);
    if (allocated) memset(allocated, 1, 200);
    if (close(-1) != -1 || errno != EBADF) foreign++;
    free(allocated);
    errno = before;
}

static void storm(long alarm_us, long profile_us) {
    struct itimerval alarms = {{0, alarm_us}, {0, alarm_us}};
    struct itimerval profile = {{0, profile_us}, {0, profile_us}};
    CHECK_EQ(setitimer(ITIMER_REAL, &alarms, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_PROF, &profile, NULL), 0);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaddset(&action.sa_mask, SIGALRM);
    sigaddset(&action.sa_mask, SIGPROF);
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    CHECK_EQ(sigaction(SIGPROF, &action, NULL), 0);
    storm(120, 170);
    int wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int length = 1 << (round % 19);
        for (int distance = 1; distance < size; distance++) {
            int to = (rank + distance) % size, from = (rank + size - distance) % size;
            memset(outgoing, rank + round, (size_t)length);
            MPI_Sendrecv(outgoing, length, MPI_BYTE, to, round, incoming, length, MPI_BYTE, from,
                         round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int index = 0; index < length; index++)
                wrong += incoming[index] != (unsigned char)(from + round);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    storm(0, 0);
    CHECK_EQ(wrong, 0);
    CHECK_EQ((int)foreign, 0);
    CHECK(handled > 0);
    MPI_Finalize();
    return 0;
}
