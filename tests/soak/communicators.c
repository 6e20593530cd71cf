/* Rounds that make communicators: parts, duplicates, parts made by their members only, intercommunicators and grids.
   What they are, and that messages within them arrive and stay within. */
#include "soak.h"

/* A message round the ring of a communicator. */
static void ring(const Round *round, MPI_Comm comm, int number) {
    int me, size;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
    int next = (me + 1) % size, previous = (me + size - 1) % size;
    uint64_t out = key_of(round, me, next, number), in = 0;
    MPI_Sendrecv(&out, 1, MPI_UINT64_T, next, number % 100, &in, 1, MPI_UINT64_T, previous, number % 100, comm,
                 MPI_STATUS_IGNORE);
    if (in != key_of(round, previous, me, number))
        wrong(round, "ring %d of %d members: another message came", number, size);
    uint64_t sum = 0, one = out ^ (uint64_t)me, expected = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_UINT64_T, MPI_BXOR, comm);
    for (int member = 0; member < size; member++)
        expected ^= key_of(round, member, (member + 1) % size, number) ^ (uint64_t)member;
    if (sum != expected) wrong(round, "allreduce %d of %d members: a wrong result", number, size);
    count_done(2, 16);
}

static void split(Round *round) {
    int colors = 1 + below(&round->dice, 4), me, size, before = 0, members = 0;
    uint64_t key = throw_dice(&round->dice);
    int color = (int)(word(key, (uint64_t)round->me) % (uint64_t)colors),
        order = (int)(word(key + 1, (uint64_t)round->me) % 5);
    for (int other = 0; other < round->size; other++) {
        if ((int)(word(key, (uint64_t)other) % (uint64_t)colors) != color) continue;
        int theirs = (int)(word(key + 1, (uint64_t)other) % 5);
        members++, before += theirs < order || (theirs == order && other < round->me);
    }
    MPI_Comm part;
    MPI_Comm_split(round->comm, color, order, &part);
    MPI_Comm_rank(part, &me);
    MPI_Comm_size(part, &size);
    if (me != before || size != members) wrong(round, "rank %d of %d, not %d of %d", me, size, before, members);
    ring(round, part, 1);
    MPI_Comm_free(&part);
}

static void duplicates(Round *round) {
    enum { MOST = 6 };
    MPI_Comm all[MOST];
    MPI_Request requests[MOST];
    int count = 1 + below(&round->dice, MOST), waits = one_in(&round->dice, 2);
    if (count > round->effort) count = round->effort;
    for (int i = 0; i < count; i++) {
        if (waits) MPI_Comm_idup(round->comm, &all[i], &requests[i]);
        else MPI_Comm_dup(round->comm, &all[i]), requests[i] = MPI_REQUEST_NULL;
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    /* The same tag in each: they must not meet, although they are received in the other order. */
    uint64_t in[MOST], out[MOST];
    int next = (round->me + 1) % round->size, previous = (round->me + round->size - 1) % round->size;
    MPI_Request sends[MOST];
    for (int i = 0; i < count; i++) {
        out[i] = key_of(round, round->me, next, i);
        MPI_Isend(&out[i], 1, MPI_UINT64_T, next, 3, all[i], &sends[i]);
    }
    for (int i = count; i-- > 0;) {
        MPI_Recv(&in[i], 1, MPI_UINT64_T, one_in(&round->dice, 2) ? MPI_ANY_SOURCE : previous, MPI_ANY_TAG, all[i],
                 MPI_STATUS_IGNORE);
        if (in[i] != key_of(round, previous, round->me, i)) wrong(round, "duplicate %d got another one's message", i);
    }
    MPI_Waitall(count, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; i++) MPI_Comm_free(&all[i]);
    count_done((uint64_t)count, 8 * (uint64_t)count);
}

static void by_members(Round *round) {
    MPI_Group all, some;
    int ranks[1024], count = 0, step = 1 + below(&round->dice, 3), first = below(&round->dice, round->size);
    for (int rank = first; rank < round->size && count < 1024; rank += step) ranks[count++] = rank;
    MPI_Comm_group(round->comm, &all);
    MPI_Group_incl(all, count, ranks, &some);
    MPI_Comm part = MPI_COMM_NULL;
    if (one_in(&round->dice, 2)) MPI_Comm_create(round->comm, some, &part);
    else if (round->me >= first && (round->me - first) % step == 0)
        MPI_Comm_create_group(round->comm, some, 17, &part);
    EXPECT(round, (part != MPI_COMM_NULL) == (round->me >= first && (round->me - first) % step == 0));
    if (part != MPI_COMM_NULL) {
        ring(round, part, 2);
        MPI_Comm_free(&part);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&some);
}

static void between(Round *round) {
    if (round->size < 2) return;
    int border = 1 + below(&round->dice, round->size - 1), upper = round->me >= border, me, theirs;
    MPI_Comm half, inter, merged;
    MPI_Comm_split(round->comm, upper, 0, &half);
    MPI_Intercomm_create(half, 0, round->comm, upper ? 0 : border, 21, &inter);
    MPI_Comm_remote_size(inter, &theirs);
    MPI_Comm_rank(inter, &me);
    EXPECT(round, theirs == (upper ? border : round->size - border));
    uint64_t mine = key_of(round, round->me, 0, 3), sum = 0, expected = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, inter);
    for (int rank = upper ? 0 : border; rank < (upper ? border : round->size); rank++)
        expected += key_of(round, rank, 0, 3);
    if (sum != expected) wrong(round, "the other group's sum is wrong");
    /* Members of equal rank write to each other. */
    if (me < theirs) {
        uint64_t in = 0;
        int other = upper ? me : border + me;
        MPI_Sendrecv(&mine, 1, MPI_UINT64_T, me, 8, &in, 1, MPI_UINT64_T, me, 8, inter, MPI_STATUS_IGNORE);
        if (in != key_of(round, other, 0, 3)) wrong(round, "another message came between groups");
    }
    MPI_Intercomm_merge(inter, upper, &merged);
    ring(round, merged, 4);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    count_done(2, 16);
}

static void grid(Round *round) {
    int sizes[2] = {0, 0}, periods[2] = {below(&round->dice, 2), below(&round->dice, 2)}, me, count, words;
    MPI_Comm comm;
    MPI_Dims_create(round->size, 2, sizes);
    MPI_Cart_create(round->comm, 2, sizes, periods, one_in(&round->dice, 2), &comm);
    MPI_Comm_rank(comm, &me);
    words = 1 + below(&round->dice, 600), count = 4 * words;
    uint64_t *out = malloc((size_t)count * 8), *in = malloc((size_t)count * 8);
    int neighbours[4];
    for (int dimension = 0; dimension < 2; dimension++)
        MPI_Cart_shift(comm, dimension, 1, &neighbours[2 * dimension], &neighbours[2 * dimension + 1]);
    for (int side = 0; side < 4; side++)
        for (int i = 0; i < words; i++)
            out[side * words + i] = word(key_of(round, me, side, 5), (uint64_t)i), in[side * words + i] = 1;
    if (one_in(&round->dice, 2)) {
        MPI_Neighbor_alltoall(out, words, MPI_UINT64_T, in, words, MPI_UINT64_T, comm);
    } else {
        MPI_Request request;
        Dice own = own_dice(round, round->me, 7);
        MPI_Ineighbor_alltoall(out, words, MPI_UINT64_T, in, words, MPI_UINT64_T, comm, &request);
        compute(&own);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int side = 0; side < 4; side++)
        for (int i = 0; i < words; i++) {
            /* What comes from below was sent upwards. */
            uint64_t expected = neighbours[side] == MPI_PROC_NULL
                                    ? 1
                                    : word(key_of(round, neighbours[side], side ^ 1, 5), (uint64_t)i);
            if (in[side * words + i] != expected)
                wrong(round, "neighbour %d of %d: word %d of %d", side, neighbours[side], i, words);
        }
    free(in), free(out);
    MPI_Comm_free(&comm);
    count_done(4, (uint64_t)count * 8);
}

void communicators(Round *round) {
    switch (below(&round->dice, 5)) {
    case 0: split(round); break;
    case 1: duplicates(round); break;
    case 2: by_members(round); break;
    case 3: between(round); break;
    default: grid(round);
    }
}
