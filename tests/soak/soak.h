/* What all kinds of rounds share: dice that every rank throws alike, bytes that only the right message has, and the
   report of a wrong one. See soak.c. */
#ifndef SOAK_H
#define SOAK_H
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A sequence of random numbers. Ranks with equal dice throw equal numbers. */
typedef struct {
    uint64_t state;
} Dice;

/* One round of the program. */
typedef struct {
    uint64_t key;  /* of this round's content */
    Dice dice;     /* the same at all ranks */
    int effort;    /* at most this many messages, operations, ...: what a failure is shrunk by */
    int part;      /* which thread of a rank, 0 without threads */
    MPI_Comm comm; /* of all ranks that take part */
    int me, size;
} Round;

/* What was done, for the last line; each thread adds its own under a lock. */
void count_done(uint64_t messages, uint64_t bytes);

/* Ends the job with status 3 and a message that names the round. */
void wrong(const Round *round, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

#define EXPECT(round, condition)                                                                                     \
    do {                                                                                                             \
        if (!(condition)) wrong(round, "%s:%d: not so: %s", __FILE__, __LINE__, #condition);                         \
    } while (0)

static inline uint64_t mix(uint64_t value) {
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

static inline uint64_t throw_dice(Dice *dice) { return mix(dice->state++); }

/* From 0 to limit - 1. */
static inline int below(Dice *dice, int limit) { return (int)(throw_dice(dice) % (uint64_t)limit); }

/* One of `sides` times. */
static inline int one_in(Dice *dice, int sides) { return below(dice, sides) == 0; }

/* Dice of one rank: other than those of all others, yet known to everybody. */
static inline Dice own_dice(const Round *round, int rank, int purpose) {
    return (Dice){mix(round->key ^ mix((uint64_t)rank << 32 | (uint64_t)purpose))};
}

/* The content of a message, and of the elements of operations. */
static inline uint64_t word(uint64_t key, uint64_t at) { return mix(key ^ at * 0xff51afd7ed558ccdu); }

static inline uint64_t key_of(const Round *round, int from, int to, int number) {
    return mix(round->key ^ mix((uint64_t)from << 44 | (uint64_t)to << 24 | (uint64_t)number));
}

void fill_bytes(unsigned char *bytes, size_t length, uint64_t key);
/* The first byte that is not the message's; `length` if there is none. */
size_t first_wrong(const unsigned char *bytes, size_t length, uint64_t key);

/* Computes for a while, sometimes: others have to make the progress. */
void compute(Dice *own);

/* A length in bytes, as they occur around the thresholds of an MPI library. */
int some_length(Dice *dice, int most);

/* Waits for requests in one of the ways that MPI has, then `statuses` has what came. */
void complete(const Round *round, Dice *own, int count, MPI_Request *requests, MPI_Status *statuses);

/* The kinds of rounds. */
void messages(Round *round);
void burst(Round *round);
void partitions(Round *round);
void collectives(Round *round);
void windows(Round *round);
void communicators(Round *round);
void threads(Round *round);
void files(Round *round);
#endif
