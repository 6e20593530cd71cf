// Runs a program as a container would: without the system calls that Docker's default profile denies.
//
//     filtered [-all] program arguments...
//
// With -all also without those that older versions, and stricter profiles, deny: access to the memory of other
// processes, and what a C library or a runtime uses when it is there.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NAMESPACES = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET };

static const int denied[] = {
    SYS_acct, SYS_add_key, SYS_bpf, SYS_fanotify_init, SYS_get_mempolicy, SYS_io_uring_enter, SYS_io_uring_register,
    SYS_io_uring_setup, SYS_kcmp, SYS_keyctl, SYS_mbind, SYS_migrate_pages, SYS_mount, SYS_move_pages,
    SYS_open_by_handle_at, SYS_perf_event_open, SYS_pidfd_getfd, SYS_pivot_root, SYS_process_madvise,
    SYS_request_key, SYS_set_mempolicy, SYS_setns, SYS_syslog, SYS_umount2, SYS_unshare, SYS_userfaultfd, SYS_vhangup,
};
static const int denied_too[] = {SYS_membarrier, SYS_process_vm_readv, SYS_process_vm_writev, SYS_ptrace, SYS_rseq};

static struct sock_filter filter[128];
static unsigned short length;

static void add(unsigned short code, unsigned value, unsigned char yes, unsigned char no) {
    filter[length++] = (struct sock_filter){code, yes, no, value};
}

static void deny(int call, int error) {
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error, 0, 0);
}

int main(int argc, char **argv) {
    int all = argc > 1 && strcmp(argv[1], "-all") == 0;
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    // Docker says that there is no clone3, since a filter cannot look at its arguments.
    deny(SYS_clone3, ENOSYS);
    for (size_t i = 0; i < sizeof denied / sizeof *denied; i++) deny(denied[i], EPERM);
    for (size_t i = 0; all && i < sizeof denied_too / sizeof *denied_too; i++) deny(denied_too[i], EPERM);
    add(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3);
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]), 0, 0);
    add(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    struct sock_fprog program = {length, filter};
    if (argc < 2 + all || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("filtered");
        return 99;
    }
    execvp(argv[1 + all], argv + 1 + all);
    perror(argv[1 + all]);
    return 99;
}
