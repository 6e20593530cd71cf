// What a process has from the one that executed it, or forked it: prints a line of it for each rank.
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

int main(int count, char **arguments) {
    char directory[4096] = "", text[4096];
    int *application = NULL;
    unsigned long nodes[16] = {0};
    int rank, number, variables = 0, policy = 0, ignored = 0, blocked = 0, open = 0, length = 0;
    struct sched_param priority = {0};
    struct rlimit limit;
    cpu_set_t cpus;
    sigset_t mask;

    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &application, &number);
    for (int index = 0; index < count; index++)
        length += snprintf(text + length, sizeof text - length, "[%s] ", arguments[index]);
    sched_getaffinity(0, sizeof cpus, &cpus);
    sched_getparam(0, &priority);
    syscall(SYS_get_mempolicy, &policy, nodes, 1024, NULL, 0);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int signal = 1; signal < 32; signal++) {
        struct sigaction action = {0};
        sigaction(signal, NULL, &action);
        ignored |= (action.sa_handler == SIG_IGN) << signal;
        blocked |= (sigismember(&mask, signal) == 1) << signal;
    }
    for (int descriptor = 0; descriptor < 3; descriptor++) {
        struct stat status;
        open |= (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) << descriptor;
    }
    for (char **entry = environ; *entry; entry++)
        variables += (*entry)[0] == 'W' && (*entry)[1] == '_';
    mode_t file_mask = umask(0);
    length += snprintf(text + length, sizeof text - length,
                       "%d W_A=%s in %s, umask %o, nice %d, policy %d %d, ioprio %lx, cpus %d %d, memory %x %lx, "
                       "signals %x %x, files %x, slack %d, personality %x, limits",
                       variables, getenv("W_A"), getcwd(directory, sizeof directory), (unsigned)file_mask,
                       getpriority(PRIO_PROCESS, 0), sched_getscheduler(0), priority.sched_priority,
                       syscall(SYS_ioprio_get, 1, 0), CPU_COUNT(&cpus), CPU_ISSET(0, &cpus), (unsigned)policy, nodes[0],
                       (unsigned)ignored, (unsigned)blocked, (unsigned)open, prctl(PR_GET_TIMERSLACK),
                       (unsigned)personality(0xffffffff));
    for (int resource = 0; resource < 16; resource++)
        if (resource != RLIMIT_AS && resource != RLIMIT_DATA && getrlimit(resource, &limit) == 0)
            length += snprintf(text + length, sizeof text - length, " %lx", (unsigned long)limit.rlim_cur);
    fprintf(stdout, "rank %d of program %d: %s\n", rank, number ? *application : -1, text);
    fflush(stdout);
    return MPI_Finalize();
}
