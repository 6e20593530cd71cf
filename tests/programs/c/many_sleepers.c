// Hundreds of threads of one rank sleep at the same time, each until a message of its own comes: 256 is where a
// count of sleepers in 8 bits begins anew.
//# ranks: 2
//# progress: steal, none
//# wait: park
//# libs: -lpthread
//# timeout: 60
#include "check.h"
#include <dirent.h>
#include <pthread.h>
#include <unistd.h>
enum { MOST = 300 };
static const int counts[] = {255, 256, 257, MOST};

static void *await(void *argument) {
    int tag = (int)(size_t)argument, got = -1;
    MPI_Recv(&got, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(got, tag * 3);
    return NULL;
}

/* Threads of this process that sleep in the kernel. */
static int sleepers(void) {
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *task; (task = readdir(tasks));) {
        char path[300], state = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", task->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        found += fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && state == 'S';
        fclose(file);
    }
    closedir(tasks);
    return found;
}

static void sleep_all(int count) {
    pthread_t threads[MOST];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    for (int i = 0; i < count; i++) CHECK_EQ(pthread_create(&threads[i], &small, await, (void *)(size_t)i), 0);
    /* Most of the time all of them sleep; a look that finds them so is what the test is about. */
    for (int looks = 0; sleepers() < count && looks < 1000; looks++) usleep(2000);
    MPI_Send(&count, 1, MPI_INT, 0, MOST, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

static void wake_all(int count) {
    int asleep;
    MPI_Recv(&asleep, 1, MPI_INT, 1, MOST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(asleep, count);
    for (int i = 0; i < count; i++) {
        int value = i * 3;
        MPI_Send(&value, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK_EQ(level, MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 4; i++) {
        if (rank == 1) sleep_all(counts[i]);
        else wake_all(counts[i]);
    }
    return finish();
}
