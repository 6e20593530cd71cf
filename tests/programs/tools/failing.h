/* System calls of the calling task that fail at will.
 *
 * The kernel gives each system call of a task to a handler of SIGSYS (syscall user dispatch, Linux 5.11). The handler
 * lets it fail, or executes it, by instructions from which the kernel takes calls as ever. It uses neither the C
 * library nor thread-local data, as the call may be anybody's. Other tasks of the process are not affected. */
#ifndef FAILING_H
#define FAILING_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { DISPATCH = 59, DISPATCH_ON = 1, LET = 0, STOP = 1, CALLS_MOST = 32 };

static volatile char failing_selector;
/* Calls that count, and with what they fail. */
static volatile int failing_calls[CALLS_MOST], failing_number, failing_error;
/* Those that were counted; the first that fails, from 1, and the last. */
static volatile long failing_count, failing_first, failing_last;
/* Bytes of address space given back meanwhile: so many can be had again, where calls fail for good. */
static volatile long failing_room;
/* Where a new task goes on. */
__attribute__((used)) static volatile long failing_resume;

/* What may make system calls: failing_do(number, arguments), failing_return(stack), failing_restorer. */
long failing_do(long number, const greg_t *arguments);
void failing_return(long stack);
extern const char failing_begin[], failing_end[];
void failing_restorer(void);
__asm__(".text\n"
        "failing_begin:\n"
        "failing_do: push %rbx; push %r12\n"
        "  mov %rdi, %rax; mov %rsi, %rbx\n"
        "  mov (%rbx), %rdi; mov 8(%rbx), %rsi; mov 16(%rbx), %rdx\n"
        "  mov 24(%rbx), %r10; mov 32(%rbx), %r8; mov 40(%rbx), %r9\n"
        "  mov %rsp, %r12; syscall\n"
        "  cmp %rsp, %r12; jne 1f; pop %r12; pop %rbx; ret\n"
        /* A new task on a stack of its own. */
        "1: mov failing_resume(%rip), %rcx; jmp *%rcx\n"
        "failing_return: mov %rdi, %rsp\n"
        "failing_restorer: mov $15, %eax; syscall\n"
        "  ud2\n"
        "failing_end:\n");

/* The kernel's sigaction. */
struct failing_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

static const unsigned long failing_bit = 1UL << (SIGSYS - 1);

static long failing_mask(ucontext_t *context, const greg_t *a) {
    unsigned long *mask = (unsigned long *)&context->uc_sigmask, before = *mask;
    const unsigned long *set = (const unsigned long *)a[1];
    if (set) {
        unsigned long after = a[0] == SIG_BLOCK ? before | *set : a[0] == SIG_UNBLOCK ? before & ~*set : *set;
        *mask = after & ~failing_bit;
    }
    if (a[2]) *(unsigned long *)a[2] = before;
    return 0;
}

static long failing_sigaction(const greg_t *a) {
    greg_t changed[6] = {a[0], a[1], a[2], a[3], a[4], a[5]};
    struct failing_action action;
    if (a[0] == SIGSYS) return 0;
    if (a[1]) {
        action = *(const struct failing_action *)a[1];
        action.mask &= ~failing_bit;
        changed[1] = (greg_t)&action;
    }
    return failing_do(SYS_rt_sigaction, changed);
}

static int failing_is_due(int call, const greg_t *a) {
    for (int i = 0; i < failing_number; i++) {
        if (failing_calls[i] != call) continue;
        failing_count++;
        if (failing_count < failing_first || failing_count > failing_last) return 0;
        if (call != SYS_mmap || failing_last == failing_first || a[1] > failing_room) return 1;
        failing_room -= a[1];
    }
    return 0;
}

static void failing_handler(int signal, siginfo_t *info, void *where) {
    (void)signal;
    ucontext_t *context = where;
    greg_t *r = context->uc_mcontext.gregs;
    int call = info->si_syscall;
    const greg_t a[6] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]};
    if (call == SYS_rt_sigreturn) failing_return(r[REG_RSP]);
    if (call == SYS_rt_sigprocmask) r[REG_RAX] = failing_mask(context, a);
    else if (call == SYS_rt_sigaction) r[REG_RAX] = failing_sigaction(a);
    else if (failing_is_due(call, a)) r[REG_RAX] = -failing_error;
    else {
        failing_resume = r[REG_RIP];
        r[REG_RAX] = failing_do(call, a);
        if (call == SYS_munmap && r[REG_RAX] == 0) failing_room += a[1];
    }
}

/* From now on the given calls are counted, and those from `first` to `last` fail. */
static void failing_begin_with(int error, long first, long last) {
    failing_error = error, failing_first = first, failing_last = last, failing_count = failing_room = 0;
    failing_selector = STOP;
}

/* All is as ever; says how many calls there were. */
__attribute__((unused)) static long failing_stop(void) {
    failing_selector = LET;
    return failing_count;
}

/* This statement is spared. */
#define FAILING_SPARE(statement)               \
    do {                                       \
        char selector_ = failing_selector;     \
        failing_selector = LET;                \
        statement;                             \
        failing_selector = selector_;          \
    } while (0)

/* Whether the system can do it. */
__attribute__((unused)) static int failing_start(const int *calls, int number) {
    struct failing_action action = {failing_handler, SA_SIGINFO | SA_NODEFER | 0x04000000, failing_restorer, 0};
    const greg_t a[6] = {SIGSYS, (greg_t)&action, 0, 8, 0, 0};
    for (int i = 0; i < number && i < CALLS_MOST; i++) failing_calls[i] = calls[i];
    failing_number = number;
    failing_do(SYS_rt_sigaction, a);
    for (int number = 1; number <= 64; number++) {
        /* Handlers that are there must not keep the signal from coming. */
        greg_t there[6] = {number, 0, (greg_t)&action, 8, 0, 0};
        if (number == SIGSYS || failing_do(SYS_rt_sigaction, there)) continue;
        there[1] = (greg_t)&action, there[2] = 0, action.mask &= ~failing_bit;
        failing_do(SYS_rt_sigaction, there);
    }
    const greg_t p[6] = {DISPATCH, DISPATCH_ON, (greg_t)failing_begin, failing_end - failing_begin,
                         (greg_t)&failing_selector, 0};
    return failing_do(SYS_prctl, p) == 0;
}
#endif
