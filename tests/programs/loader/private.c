/* Checks that nothing of a process is shared with other ranks: statics, thread-local
 * data, errno, working directory, descriptors, signal handlers, standard streams. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int counter;
static __thread int local;
static volatile sig_atomic_t handled;
static int failures;

static void expect(int condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "not private: %s\n", what);
        failures++;
    }
}

static void on_signal(int number) { handled = number; }

static void *in_thread(void *unused)
{
    (void)unused;
    local += 10;
    return (void *)(long)local;
}

int main(void)
{
    char folder[] = "/tmp/cohort-private-XXXXXX", here[256];
    expect(mkdtemp(folder) != NULL && chdir(folder) == 0, "temporary folder");
    int fd = open("own", O_CREAT | O_RDWR, 0600);
    expect(fd == 3, "first free descriptor is 3");
    signal(SIGUSR1, on_signal);
    char text[32];
    int length = snprintf(text, sizeof text, "%d", getpid());
    expect(write(fd, text, length) == length, "write");
    setenv("TEST_COHORT_PRIVATE", text, 1);
    errno = 0;

    for (int i = 0; i < 1000; i++) {
        counter++;
        local++;
        usleep(20);
    }

    expect(counter == 1000, "statics");
    expect(local == 1000, "thread-local data");
    pthread_t thread;
    void *result = NULL;
    expect(pthread_create(&thread, NULL, in_thread, NULL) == 0, "pthread_create");
    pthread_join(thread, &result);
    expect((long)result == 10, "thread-local data of a thread");
    expect(getcwd(here, sizeof here) && strcmp(here, folder) == 0, "working directory");
    expect(strcmp(getenv("TEST_COHORT_PRIVATE"), text) == 0, "environment");
    char read_back[32] = {0};
    expect(pread(fd, read_back, sizeof read_back, 0) == length && strcmp(read_back, text) == 0,
           "descriptors");
    kill(getpid(), SIGUSR1);
    expect(handled == SIGUSR1, "signal handlers");
    struct sigaction pipe_action;
    sigaction(SIGPIPE, NULL, &pipe_action);
    expect(pipe_action.sa_handler == SIG_DFL, "SIGPIPE is as execve leaves it");
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    expect(!sigismember(&mask, SIGTERM) && !sigismember(&mask, SIGCHLD), "signal mask");
    unlink("own");
    rmdir(folder);
    printf("done\n");
    return failures != 0;
}
