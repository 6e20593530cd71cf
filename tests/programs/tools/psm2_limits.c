// What libfabric's provider psm2 does otherwise than its description says, without MPI: one line of standard output for
// each limit that is there. The transport's quirks rest on them. To be run by tools/with-psm2.sh.
#include <errno.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NAME = 64, ROOM = 16384, BUFFERS = 32 };

struct end {
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    char name[NAME];
    size_t length;
};

static void must(int ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "psm2_limits: %s\n", what);
    _exit(2);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static struct end open_end(enum fi_wait_obj wait) {
    struct end end = {.length = NAME};
    struct fi_info *hints = fi_allocinfo(), *info;
    hints->caps = FI_MSG;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->fabric_attr->prov_name = strdup("psm2");
    must(!fi_getinfo(FI_VERSION(1, 11), NULL, NULL, 0, hints, &info), "there is no psm2");
    struct fi_av_attr av = {.type = FI_AV_TABLE, .count = 4};
    struct fi_cq_attr cq = {.size = 128, .format = FI_CQ_FORMAT_MSG, .wait_obj = wait};
    must(!fi_fabric(info->fabric_attr, &end.fabric, NULL), "fi_fabric");
    must(!fi_domain(end.fabric, info, &end.domain, NULL), "fi_domain");
    must(!fi_av_open(end.domain, &av, &end.av, NULL), "fi_av_open");
    must(!fi_cq_open(end.domain, &cq, &end.cq, NULL), "fi_cq_open");
    must(!fi_endpoint(end.domain, info, &end.ep, NULL), "fi_endpoint");
    must(!fi_ep_bind(end.ep, &end.av->fid, 0), "fi_ep_bind");
    must(!fi_ep_bind(end.ep, &end.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    must(!fi_enable(end.ep), "fi_enable");
    must(!fi_getname(&end.ep->fid, end.name, &end.length), "fi_getname");
    return end;
}

static fi_addr_t exchange(struct end *end, int in, int out) {
    char name[NAME];
    fi_addr_t peer;
    must(write(out, end->name, NAME) == NAME && read(in, name, NAME) == NAME, "names");
    must(fi_av_insert(end->av, name, 1, &peer, 0, NULL) == 1, "fi_av_insert");
    return peer;
}

// Waits for a completion, for so many seconds; returns its length, or -1.
static long completion(struct end *end, double seconds) {
    struct fi_cq_msg_entry entry;
    for (double until = now() + seconds; now() < until;) {
        ssize_t read = fi_cq_read(end->cq, &entry, 1);
        if (read == 1 && (entry.flags & FI_RECV)) return (long)entry.len;
        if (read < 0 && read != -FI_EAGAIN) return -1;
    }
    return -1;
}

static char room[BUFFERS][ROOM];
static struct fi_context2 contexts[BUFFERS], sending;

static void post(struct end *end) {
    for (int i = 0; i < BUFFERS; i++)
        must(!fi_recv(end->ep, room[i], ROOM, NULL, FI_ADDR_UNSPEC, &contexts[i]), "fi_recv");
}

static void tell(int out) { must(write(out, "", 1) == 1, "pipe"); }
static void hear(int in) {
    char byte;
    must(read(in, &byte, 1) == 1, "pipe");
}

static char bytes[ROOM];

// Each is called in two processes with a pipe from the other one and one to it. The first one's status is 1
// where the limit is there.

// A peer that does not poll: the first send does not return before it does.
static int connect_waits(int first, int in, int out) {
    struct end end = open_end(FI_WAIT_NONE);
    fi_addr_t peer = exchange(&end, in, out);
    post(&end);
    if (!first) {
        sleep(2);
        return completion(&end, 5) < 0;
    }
    double start = now();
    must(!fi_send(end.ep, "", 1, NULL, peer, &sending), "fi_send");
    return now() - start > 1;
}

// A peer that sleeps on the descriptor of its queue, as fi_trywait allows, does not hear of a send.
static int sleeps_forever(int first, int in, int out) {
    struct end end = open_end(FI_WAIT_FD);
    fi_addr_t peer = exchange(&end, in, out);
    post(&end);
    must(!fi_send(end.ep, "", 1, NULL, peer, &sending), "fi_send");
    must(completion(&end, 5) == 1, "the first message");
    if (!first) {
        hear(in);
        must(!fi_send(end.ep, "", 1, NULL, peer, &sending), "fi_send");
        hear(in);
        return 0;
    }
    struct fid *list[] = {&end.cq->fid};
    struct pollfd queue = {.events = POLLIN};
    must(!fi_control(&end.cq->fid, FI_GETWAIT, &queue.fd), "FI_GETWAIT");
    struct fi_cq_msg_entry entry;
    while (fi_cq_read(end.cq, &entry, 1) > 0 || fi_trywait(end.fabric, list, 1))
        ;
    tell(out);
    int ready = poll(&queue, 1, 2000);
    int came = completion(&end, 2) == 1;
    tell(out);
    return came && ready == 0;
}

// Two endpoints of one process have one name.
static int named_by_process(int first, int in, int out) {
    (void)in, (void)out;
    if (!first) return 0;
    struct end one = open_end(FI_WAIT_NONE), other = open_end(FI_WAIT_NONE);
    return memcmp(one.name, other.name, one.length) == 0;
}

// Sends a message in `count` pieces, or in one, and a short one behind it; says whether the short one is
// complete first.
static int overtakes(int first, int in, int out, const struct iovec *pieces, size_t count) {
    struct end end = open_end(FI_WAIT_NONE);
    fi_addr_t peer = exchange(&end, in, out);
    static struct fi_context2 sends[2];
    post(&end);
    must(!fi_send(end.ep, "", 1, NULL, peer, &sending), "fi_send");
    must(completion(&end, 5) == 1, "the first message");
    if (first) {
        long length = completion(&end, 5);
        must(length >= 0 && completion(&end, 5) >= 0, "two messages");
        tell(out);
        return length == 2;
    }
    must(!fi_sendv(end.ep, pieces, NULL, count, peer, &sends[0]), "fi_sendv");
    must(!fi_send(end.ep, "2", 2, NULL, peer, &sends[1]), "fi_send");
    completion(&end, 1);
    hear(in);
    return 0;
}

// A message of several pieces is overtaken by a later one.
static int pieces_overtaken(int first, int in, int out) {
    struct iovec pieces[] = {{bytes, 16}, {bytes, 64}, {bytes, 2048}};
    return overtakes(first, in, out, pieces, 3);
}

// A long message is overtaken by a later one.
static int long_overtaken(int first, int in, int out) {
    struct iovec piece = {bytes, ROOM};
    return overtakes(first, in, out, &piece, 1);
}

// One of 8 KiB is not.
static int short_overtaken(int first, int in, int out) {
    struct iovec piece = {bytes, ROOM / 2};
    return overtakes(first, in, out, &piece, 1);
}

// To close an endpoint takes seconds while the peer keeps its own.
static int close_waits(int first, int in, int out) {
    struct end end = open_end(FI_WAIT_NONE);
    fi_addr_t peer = exchange(&end, in, out);
    post(&end);
    must(!fi_send(end.ep, "", 1, NULL, peer, &sending), "fi_send");
    must(completion(&end, 5) == 1, "the message");
    if (!first) {
        completion(&end, 4);
        hear(in);
        return 0;
    }
    double start = now();
    fi_close(&end.ep->fid);
    tell(out);
    return now() - start > 1;
}

static const struct {
    const char *name;
    int (*check)(int first, int in, int out);
    /* A race shows only sometimes: it is there if it shows in one of so many runs. */
    int tries;
} limits[] = {
    {"connect waits", connect_waits, 1},        {"sleeps for ever", sleeps_forever, 1},
    {"named by process", named_by_process, 1},  {"close waits", close_waits, 1},
    {"pieces overtaken", pieces_overtaken, 12}, {"long overtaken", long_overtaken, 12},
    {"short overtaken", short_overtaken, 4},
};

/* Whether the limit shows in a run of two processes. */
static int shows(size_t limit) {
    int one[2], other[2], status[2];
    must(!pipe(one) && !pipe(other), "pipe");
    pid_t pids[2];
    for (int side = 0; side < 2; side++) {
        if ((pids[side] = fork())) continue;
        alarm(30);
        int in = side ? one[0] : other[0], out = side ? other[1] : one[1];
        _exit(limits[limit].check(side == 0, in, out));
    }
    for (int side = 0; side < 2; side++) waitpid(pids[side], &status[side], 0);
    for (int side = 0; side < 2; side++) close(one[side]), close(other[side]);
    if (WIFSIGNALED(status[0]) || WEXITSTATUS(status[0]) == 1) return 1;
    must(WEXITSTATUS(status[0]) == 0, limits[limit].name);
    return 0;
}

int main(int argc, char **argv) {
    setenv("FI_PSM2_CONN_TIMEOUT", "30", 0);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (argc > 1 && strcmp(argv[1], limits[i].name)) continue;
        int shown = 0;
        for (int run = 0; run < limits[i].tries && !shown; run++) shown = shows(i);
        if (shown) printf("%s\n", limits[i].name), fflush(stdout);
    }
    return 0;
}
