// 64 ranks exchange messages of random sizes, tags and datatypes with random partners, half of
// them received by wildcards; every byte is verified. The seed is the first argument.
//# ranks: 64
//# progress: all
//# wait: auto, park
//# args: 1
//# timeout: 120
//# alone: yes
#include "check.h"
enum { ROUNDS = 6, PER_RANK = 24, LARGEST = 60000, TAGS = 5 };

/* One sequence for all ranks: everybody knows who sends what to whom. */
static unsigned long long state;
static unsigned next_random(void) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(state >> 33);
}

struct message {
    int from, to, tag, length, strided, id;
};

static struct message draw(int from, int id) {
    struct message m = {from, 0, 0, 0, 0, id};
    m.to = (int)(next_random() % (unsigned)size);
    m.tag = (int)(next_random() % TAGS);
    m.length = (int)(next_random() % (next_random() % 4 ? 300 : LARGEST));
    m.strided = (int)(next_random() % 3) == 0;
    return m;
}

/* A message begins with its number, then a pattern; lengths count ints. */
static int content(const struct message *m, int i) { return i == 0 ? m->id : m->id * 31 + i; }

static void send(const struct message *m, int *space, MPI_Request *request) {
    int step = m->strided ? 3 : 1, length = m->length + 1;
    MPI_Datatype type;
    MPI_Type_vector(length, 1, step, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < length; i++) space[i * step] = content(m, i);
    MPI_Isend(space, 1, type, m->to, m->tag, MPI_COMM_WORLD, request);
    MPI_Type_free(&type);
}

static void verify(const int *in, const MPI_Status *status, const struct message *all, char *seen) {
    int count;
    MPI_Get_count(status, MPI_INT, &count);
    CHECK(in[0] >= 0 && in[0] < size * PER_RANK);
    const struct message *m = &all[in[0]];
    CHECK(m->to == rank && !seen[in[0]]);
    seen[in[0]] = 1;
    CHECK_EQ(status->MPI_SOURCE, m->from);
    CHECK_EQ(status->MPI_TAG, m->tag);
    CHECK_EQ(count, m->length + 1);
    for (int i = 0; i < count; i++) CHECK_EQ(in[i], content(m, i));
}

static void one_round(struct message *all, int *in) {
    int *space[PER_RANK], mine = 0;
    MPI_Request requests[PER_RANK];
    char *seen = calloc((size_t)size, PER_RANK);
    for (int i = 0; i < size * PER_RANK; i++) {
        all[i] = draw(i / PER_RANK, i);
        if (all[i].from != rank) continue;
        space[mine] = malloc(sizeof(int) * 3 * (LARGEST + 1));
        send(&all[i], space[mine], &requests[mine]);
        mine++;
    }
    for (int i = 0; i < size * PER_RANK; i++) {
        MPI_Status status;
        if (all[i].to != rank) continue;
        /* The round's first message decides for all: exact receives, or wildcards. */
        int exact = all[0].tag % 2;
        MPI_Recv(in, LARGEST + 1, MPI_INT, exact ? all[i].from : MPI_ANY_SOURCE,
                 exact ? all[i].tag : MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        verify(in, &status, all, seen);
    }
    MPI_Waitall(mine, requests, MPI_STATUSES_IGNORE);
    while (mine > 0) free(space[--mine]);
    free(seen);
    int total;
    MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(total, size * (size - 1) / 2);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    struct message *all = malloc(sizeof *all * (size_t)size * PER_RANK);
    int *in = malloc(sizeof(int) * (LARGEST + 1));
    for (int round = 0; round < ROUNDS; round++) one_round(all, in);
    free(all);
    free(in);
    return finish();
}
