/* Random MPI programs of which every byte is checked.
 *
 *     soak SEED [--seconds N] [--rounds FIRST-LAST] [--effort N] [--kinds NAME,NAME] [--list]
 *
 * A program is a sequence of rounds. What happens in a round follows from the seed and the round's number alone, so
 * all ranks know what all others do, and what each of them has to receive; and any round can be run without those
 * before it. `--effort` bounds the messages or operations of a round. With these two soak.py shrinks a failure.
 *
 * Ends with a line of what was done, or with status 3 and a line that names the round and what was wrong in it. */
#include "soak.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

/* Rounds between two looks at the clock. */
#define STRIDE 8

typedef struct {
    const char *name;
    void (*run)(Round *round);
    int weight;
} Kind;

static const Kind kinds[] = {
    {"messages", messages, 8},       {"burst", burst, 2},     {"partitions", partitions, 1},
    {"collectives", collectives, 5}, {"windows", windows, 4}, {"communicators", communicators, 2},
    {"threads", threads, 2},         {"files", files, 2},
};
#define KINDS ((int)(sizeof kinds / sizeof *kinds))

static struct {
    uint64_t seed;
    double seconds;
    long first, last;
    int effort, list;
    int chosen[KINDS];
} options = {.seconds = 0, .first = 0, .last = -1, .effort = 1 << 20};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t messages_done, bytes_done;
static long current_round;
static const char *current_kind = "start";

void count_done(uint64_t messages, uint64_t bytes) {
    pthread_mutex_lock(&lock);
    messages_done += messages, bytes_done += bytes;
    pthread_mutex_unlock(&lock);
}

void wrong(const Round *round, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "soak: WRONG: seed %llu, round %ld (%s), rank %d, part %d: %s\n",
            (unsigned long long)options.seed, current_round, current_kind, round->me, round->part, text);
    MPI_Abort(MPI_COMM_WORLD, 3);
    exit(3);
}

void fill_bytes(unsigned char *bytes, size_t length, uint64_t key) {
    size_t at = 0;
    for (; at + 8 <= length; at += 8) {
        uint64_t value = word(key, at);
        memcpy(bytes + at, &value, 8);
    }
    uint64_t value = word(key, at);
    memcpy(bytes + at, &value, length - at);
}

size_t first_wrong(const unsigned char *bytes, size_t length, uint64_t key) {
    for (size_t at = 0; at < length; at += 8) {
        uint64_t value = word(key, at);
        size_t part = length - at < 8 ? length - at : 8;
        if (memcmp(bytes + at, &value, part) == 0) continue;
        for (size_t i = 0; i < part; i++)
            if (bytes[at + i] != ((unsigned char *)&value)[i]) return at + i;
    }
    return length;
}

void compute(Dice *own) {
    if (!one_in(own, 4)) return;
    double until = MPI_Wtime() + 1e-6 * below(own, one_in(own, 16) ? 3000 : 100);
    while (MPI_Wtime() < until) {}
}

int some_length(Dice *dice, int most) {
    static const int edges[] = {0, 8, 64, 256, 512, 1024, 4096, 8192, 16384, 65536, 131072, 1 << 20};
    int length = edges[below(dice, (int)(sizeof edges / sizeof *edges))];
    switch (below(dice, 4)) {
    case 0: length = below(dice, 64); break;
    case 1: length += below(dice, 160) - 80; break;
    case 2: length = length / 2 + below(dice, length / 2 + 1); break;
    default: break;
    }
    return length < 0 ? 0 : length > most ? most : length;
}

void complete(const Round *round, Dice *own, int count, MPI_Request *requests, MPI_Status *statuses) {
    int done = 0, index, flag, some, indices[256];
    MPI_Status few[256];
    switch (below(own, 6)) {
    case 0:
        for (;;) {
            MPI_Status status;
            MPI_Waitany(count, requests, &index, &status);
            if (index == MPI_UNDEFINED) return;
            statuses[index] = status;
        }
    case 1:
        if (count > 256) break;
        for (;;) {
            MPI_Waitsome(count, requests, &some, indices, few);
            if (some == MPI_UNDEFINED) return;
            for (int i = 0; i < some; i++) statuses[indices[i]] = few[i];
            EXPECT(round, (done += some) <= count);
        }
    case 2:
        for (;;) {
            MPI_Testall(count, requests, &flag, statuses);
            if (flag) return;
            compute(own);
        }
    case 3:
        for (int i = count; i-- > 0;)
            for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, &statuses[i]);
        return;
    case 4:
        for (int i = 0; i < count; i++) MPI_Wait(&requests[i], &statuses[i]);
        return;
    default: break;
    }
    MPI_Waitall(count, requests, statuses);
}

static void usage(const char *problem) {
    fprintf(stderr,
            "soak: %s\nusage: soak SEED [--seconds N] [--rounds FIRST-LAST] [--effort N] [--kinds A,B] [--list]\n",
            problem);
    exit(2);
}

static void choose(char *names) {
    for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) {
        int kind = 0;
        while (kind < KINDS && strcmp(kinds[kind].name, name) != 0) kind++;
        if (kind == KINDS) usage("there is no such kind of round");
        options.chosen[kind] = 1;
    }
}

static void read_options(int argc, char **argv) {
    if (argc < 2) usage("a seed is wanted");
    options.seed = strtoull(argv[1], NULL, 0);
    int any = 0;
    for (int i = 2; i < argc; i++) {
        int has_value = i + 1 < argc;
        if (strcmp(argv[i], "--list") == 0) options.list = 1;
        else if (!has_value) usage("an option without its value, or an unknown one");
        else if (strcmp(argv[i], "--seconds") == 0) options.seconds = atof(argv[++i]);
        else if (strcmp(argv[i], "--effort") == 0) options.effort = atoi(argv[++i]);
        else if (strcmp(argv[i], "--kinds") == 0) choose(argv[++i]), any = 1;
        else if (strcmp(argv[i], "--rounds") == 0) {
            if (sscanf(argv[++i], "%ld-%ld", &options.first, &options.last) != 2) usage("rounds are FIRST-LAST");
        } else usage("an unknown option");
    }
    for (int kind = 0; kind < KINDS && !any; kind++) options.chosen[kind] = 1;
    if (options.seconds == 0 && options.last < 0) options.last = 99;
}

static const Kind *kind_of(Dice *dice) {
    int total = 0;
    for (int kind = 0; kind < KINDS; kind++) total += kinds[kind].weight;
    int thrown = below(dice, total), kind = 0;
    while (thrown >= kinds[kind].weight) thrown -= kinds[kind++].weight;
    return &kinds[kind];
}

static void run_round(long number, int me, int size) {
    Round round = {.effort = options.effort, .comm = MPI_COMM_WORLD, .me = me, .size = size};
    round.key = mix(options.seed ^ mix((uint64_t)number));
    round.dice = (Dice){mix(round.key)};
    const Kind *kind = kind_of(&round.dice);
    if (!options.chosen[kind - kinds]) return;
    if (options.list && me == 0) printf("round %ld: %s\n", number, kind->name), fflush(stdout);
    current_round = number, current_kind = kind->name;
    kind->run(&round);
}

int main(int argc, char **argv) {
    int provided, me, size;
    read_options(argc, argv);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double until = MPI_Wtime() + options.seconds;
    long number = options.first;
    for (int goes_on = 1; goes_on && (options.last < 0 || number <= options.last); number++) {
        run_round(number, me, size);
        if (options.seconds > 0 && number % STRIDE == STRIDE - 1) {
            goes_on = MPI_Wtime() < until;
            MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
    }
    uint64_t own[2] = {messages_done, bytes_done}, all[2] = {0, 0};
    MPI_Reduce(own, all, 2, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (me == 0)
        printf("soak: seed %llu, rounds %ld to %ld, messages %llu, bytes %llu, none wrong\n",
               (unsigned long long)options.seed, options.first, number - 1, (unsigned long long)all[0],
               (unsigned long long)all[1]);
    MPI_Finalize();
    return 0;
}
