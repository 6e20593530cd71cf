// What a program calls rarely, by all ranks of a job: objects that are made and freed. Microseconds of each
// operation, from a barrier to a barrier, the least of several; and of local objects, a thousand and ten times as
// many that live at once.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static int *all, *reversed, *results;
static MPI_Group world, backwards;

static void dup(void) {
    MPI_Comm made;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    MPI_Comm_free(&made);
}

static void split(int color, int key) {
    MPI_Comm made;
    MPI_Comm_split(MPI_COMM_WORLD, color, key, &made);
    MPI_Comm_free(&made);
}

static void split_one(void) { split(0, rank); }
static void split_reversed(void) { split(0, -rank); }
static void split_pairs(void) { split(rank / 2, rank); }

static void split_type(void) {
    MPI_Comm made;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &made);
    MPI_Comm_free(&made);
}

static void create(void) {
    MPI_Comm made;
    MPI_Comm_create(MPI_COMM_WORLD, backwards, &made);
    MPI_Comm_free(&made);
}

static void create_group(void) {
    MPI_Comm made;
    MPI_Comm_create_group(MPI_COMM_WORLD, backwards, 7, &made);
    MPI_Comm_free(&made);
}

static void group_incl(void) {
    MPI_Group made;
    MPI_Group_incl(world, size, reversed, &made);
    MPI_Group_free(&made);
}

static void group_union(void) {
    MPI_Group made;
    MPI_Group_union(world, backwards, &made);
    MPI_Group_free(&made);
}

static void group_difference(void) {
    MPI_Group made;
    MPI_Group_difference(world, backwards, &made);
    if (made != MPI_GROUP_EMPTY)
        MPI_Group_free(&made);
}

static void group_translate(void) { MPI_Group_translate_ranks(world, size, all, backwards, results); }

static void group_compare(void) { MPI_Group_compare(world, backwards, results); }

static void cart(void) {
    MPI_Comm made;
    int sides[2] = {0, 0}, periods[2] = {1, 1};
    MPI_Dims_create(size, 2, sides);
    MPI_Cart_create(MPI_COMM_WORLD, 2, sides, periods, 1, &made);
    MPI_Comm_free(&made);
}

static void graph(void) {
    MPI_Comm made;
    int neighbours[2] = {(rank + 1) % size, (rank + size - 1) % size};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, neighbours, MPI_UNWEIGHTED, 2, neighbours, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &made);
    MPI_Comm_free(&made);
}

static void graph_of_others(void) {
    MPI_Comm made;
    int source = (rank + 1) % size, degree = 1, destination = (rank + 2) % size;
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &source, &degree, &destination, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
    MPI_Comm_free(&made);
}

static void window(void) {
    static char memory[64];
    MPI_Win made;
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &made);
    MPI_Win_free(&made);
}

static void window_allocate(void) {
    void *memory;
    MPI_Win made;
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &made);
    MPI_Win_free(&made);
}

static void window_shared(void) {
    void *memory;
    MPI_Win made;
    MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &made);
    MPI_Win_free(&made);
}

static MPI_Comm half;

static void inter(void) {
    MPI_Comm made, merged;
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < size / 2 ? size / 2 : 0, 3, &made);
    MPI_Intercomm_merge(made, 0, &merged);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&made);
}

static int repeats = 5;

static void nothing(void) {}

static void measure(const char *name, void (*operation)(void)) {
    double least = 1e9;
    operation();
    for (int i = 0; i < repeats; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        operation();
        MPI_Barrier(MPI_COMM_WORLD);
        double time = MPI_Wtime() - begin;
        least = time < least ? time : least;
    }
    if (rank == 0)
        printf("%s %.1f\n", name, 1e6 * least);
}

static void collective(const char *only) {
    all = malloc(size * sizeof *all), reversed = malloc(size * sizeof *all), results = malloc(size * sizeof *all);
    for (int i = 0; i < size; i++)
        all[i] = i, reversed[i] = size - 1 - i;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, size, reversed, &backwards);
    MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);
    struct {
        const char *name;
        void (*operation)(void);
    } operations[] = {
        {"nothing", nothing},
        {"Comm_dup", dup},
        {"Comm_split, one part", split_one},
        {"Comm_split, reversed", split_reversed},
        {"Comm_split, pairs", split_pairs},
        {"Comm_split_type", split_type},
        {"Comm_create", create},
        {"Comm_create_group", create_group},
        {"Group_incl", group_incl},
        {"Group_union", group_union},
        {"Group_difference", group_difference},
        {"Group_translate_ranks", group_translate},
        {"Group_compare", group_compare},
        {"Cart_create, reorder", cart},
        {"Dist_graph_create_adjacent", graph},
        {"Dist_graph_create", graph_of_others},
        {"Win_create", window},
        {"Win_allocate", window_allocate},
        {"Win_allocate_shared", window_shared},
        {"Intercomm_create and merge", inter},
    };
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (!only || strcmp(only, operations[i].name) == 0)
            measure(operations[i].name, operations[i].operation);
}

// Makes `count` objects of a kind, and frees them in the order in which they were made, or the other one.
static void many(int kind, int count, int backward) {
    union object {
        MPI_Comm comm;
        MPI_Group group;
        MPI_Datatype type;
        MPI_Info info;
        MPI_Request request;
        MPI_Op op;
        MPI_Errhandler handler;
        int number;
    } *made = malloc(count * sizeof *made);
    static char byte;
    for (int i = 0; i < count; i++) {
        union object *it = &made[i];
        switch (kind) {
        case 0: MPI_Comm_dup(MPI_COMM_SELF, &it->comm); break;
        case 1: MPI_Group_incl(world, 1, all, &it->group); break;
        case 2: MPI_Type_contiguous(3, MPI_INT, &it->type); break;
        case 3: MPI_Info_create(&it->info); break;
        case 4: MPI_Send_init(&byte, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF, &it->request); break;
        case 5: MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &it->number, NULL); break;
        case 6: MPI_Add_error_class(&it->number); break;
        case 7: MPI_Add_error_code(MPI_ERR_OTHER, &it->number); break;
        case 8: MPI_Irecv(&byte, 1, MPI_CHAR, 0, i & 1023, MPI_COMM_SELF, &it->request); break;
        }
    }
    for (int i = 0; i < count; i++) {
        union object *it = &made[backward ? count - 1 - i : i];
        switch (kind) {
        case 0: MPI_Comm_free(&it->comm); break;
        case 1: MPI_Group_free(&it->group); break;
        case 2: MPI_Type_free(&it->type); break;
        case 3: MPI_Info_free(&it->info); break;
        case 4: MPI_Request_free(&it->request); break;
        case 5: MPI_Comm_free_keyval(&it->number); break;
        case 6: MPI_Remove_error_class(made[count - 1 - i].number); break;
        case 7: MPI_Remove_error_code(made[count - 1 - i].number); break;
        case 8: MPI_Cancel(&it->request), MPI_Wait(&it->request, MPI_STATUS_IGNORE); break;
        }
    }
    free(made);
}

static void local(void) {
    const char *names[] = {"communicators", "groups", "datatypes", "infos", "persistent requests",
                           "keyvals", "error classes", "error codes", "receives"};
    int one = 0;
    all = &one;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int kind = 0; kind < 9; kind++)
        for (int count = 300; count <= 30000; count *= 10)
            for (int backward = 0; backward < 2; backward++) {
                double begin = MPI_Wtime();
                many(kind, count, backward);
                printf("%s, %s: %d %.3f\n", names[kind], backward ? "last first" : "first first", count,
                       1e6 * (MPI_Wtime() - begin) / count);
            }
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (count > 1 && strcmp(words[1], "local") == 0)
        local();
    else
        repeats = count > 2 ? atoi(words[2]) : repeats, collective(count > 1 ? words[1] : NULL);
    MPI_Finalize();
    return 0;
}
