/* Each rank spawns so many worlds one after the other, of so many children each; values go both ways each time. With a
 * third argument it tells now and then what the job takes. */
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Longer than what is sent in one piece. */
enum { LONG = 20000 };

static int words[LONG];

static void demand(int holds, const char *what, int turn) {
    if (holds) return;
    fprintf(stderr, "%s in turn %d\n", what, turn);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void fill(int seed) {
    for (int i = 0; i < LONG; i++) words[i] = seed * 31 + i;
}

static void check(int seed, int turn) {
    for (int i = 0; i < LONG; i++) demand(words[i] == seed * 31 + i, "a wrong word", turn);
}

static int descriptors(int pid) {
    char path[64];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *folder = opendir(path);
    while (folder && readdir(folder)) count++;
    if (folder) closedir(folder);
    return count - 2;
}

static void tell(int turn) {
    char line[256];
    long kib = 0, threads = 0, maps = 0;
    snprintf(line, sizeof line, "/proc/%d/status", (int)getppid());
    FILE *file = fopen(line, "r");
    while (file && fgets(line, sizeof line, file)) {
        sscanf(line, "VmRSS: %ld", &kib);
        sscanf(line, "Threads: %ld", &threads);
    }
    if (file) fclose(file);
    file = fopen("/proc/self/maps", "r");
    while (file && fgets(line, sizeof line, file)) maps++;
    if (file) fclose(file);
    printf("after %d: %ld KiB, %ld mappings, the launcher has %ld threads, %d descriptors; %d here\n", turn, kib, maps,
           threads, descriptors(getppid()), descriptors(getpid()));
    fflush(stdout);
}

static void child(MPI_Comm parent, int turn) {
    int rank, size, got = -1, sum = 0, one = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* Nobody else has sent anything. */
    int flag = 1;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    demand(!flag, "a message of nobody's", turn);
    MPI_Recv(&got, 1, MPI_INT, 0, 1, parent, MPI_STATUS_IGNORE);
    demand(got == turn * 10 + rank, "a wrong number at a child", turn);
    MPI_Recv(words, LONG, MPI_INT, 0, 2, parent, MPI_STATUS_IGNORE);
    check(turn + rank, turn);
    fill(turn - rank);
    got = turn * 100 + rank;
    MPI_Send(&got, 1, MPI_INT, 0, 3, parent);
    MPI_Send(words, LONG, MPI_INT, 0, 4, parent);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    demand(sum == size, "a wrong sum", turn);
    MPI_Request self;
    got = turn;
    MPI_Isend(&got, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &self);
    MPI_Recv(&sum, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    demand(sum == turn, "a wrong number of its own", turn);
    MPI_Wait(&self, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&parent);
}

int main(int argc, char **argv) {
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        child(parent, atoi(argv[1]));
        MPI_Finalize();
        return 0;
    }
    int times = atoi(argv[1]), children = atoi(argv[2]), got;
    for (int turn = 0; turn < times; turn++) {
        char number[16], *arguments[] = {number, NULL};
        MPI_Comm inter;
        snprintf(number, sizeof number, "%d", turn);
        MPI_Comm_spawn(argv[0], arguments, children, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
        for (int each = 0; each < children; each++) {
            got = turn * 10 + each;
            MPI_Send(&got, 1, MPI_INT, each, 1, inter);
            fill(turn + each);
            MPI_Send(words, LONG, MPI_INT, each, 2, inter);
        }
        for (int each = 0; each < children; each++) {
            MPI_Recv(&got, 1, MPI_INT, each, 3, inter, MPI_STATUS_IGNORE);
            demand(got == turn * 100 + each, "a wrong number at the parent", turn);
            MPI_Recv(words, LONG, MPI_INT, each, 4, inter, MPI_STATUS_IGNORE);
            check(turn - each, turn);
        }
        MPI_Comm_disconnect(&inter);
        if (argc > 3 && (turn + 1) % atoi(argv[3]) == 0) tell(turn + 1);
    }
    MPI_Finalize();
    printf("spawned %d worlds of %d\n", times, children);
    return 0;
}
