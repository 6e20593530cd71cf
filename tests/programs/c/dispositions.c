// No library that the network loads handles a signal of the program: what ends a process ends this one. (SIGABRT and
// faults have the loader's handler, which notes where the rank was and lets it die.)
//# ranks: 2
//# abi: mpi5
#include "check.h"
#include <signal.h>

static void check_dispositions(void) {
    static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM, SIGPIPE, SIGALRM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction action;
        CHECK_EQ(sigaction(signals[i], NULL, &action), 0);
        CHECK(action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
    }
}

int main(int argc, char **argv) {
    struct sigaction first;
    sigaction(SIGTERM, NULL, &first);
    start(&argc, &argv);
    CHECK(first.sa_handler == SIG_DFL || first.sa_handler == SIG_IGN);
    check_dispositions();
    return finish();
}
