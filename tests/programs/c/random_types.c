// Random datatypes, nested to depth 4, sent as one type and received as another one with the same signature;
// the received memory and MPI_Pack are compared with lists of displacements that the test keeps itself.
//# ranks: 2 4 5
//# progress: steal, none, thread
//# nodes: yes
#include "check.h"
#include <stdint.h>

#define DEPTH 4
#define LEAVES_MAX 3000
#define BYTES_MAX 400000
#define ROUNDS 60

/* A datatype, and where each of its leaves lies. A leaf is an int, or {int, double, char} in two layouts. */
typedef struct {
    MPI_Datatype handle;
    MPI_Aint lb, extent;
    int leaves;
    MPI_Aint *at;
} Type;

typedef struct {
    int parts, sizes[3];
    MPI_Aint places[2][3]; /* where the parts lie, by layout */
    MPI_Datatype handles[2];
} Leaf;

static uint64_t seed;

static int below(int limit) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)limit);
}

/* Elements are to lie beside each other: bounds that were set prevail over those of other members, and may leave data
 * out. */
static void finish_type(Type *type) {
    MPI_Aint lowest, length;
    MPI_Type_get_extent(type->handle, &type->lb, &type->extent);
    MPI_Type_get_true_extent(type->handle, &lowest, &length);
    MPI_Aint end = lowest + length;
    if (lowest >= type->lb && end <= type->lb + type->extent) return;
    if (lowest > type->lb) lowest = type->lb;
    if (end < type->lb + type->extent) end = type->lb + type->extent;
    MPI_Datatype wider;
    MPI_Type_create_resized(type->handle, lowest, end - lowest, &wider);
    MPI_Type_free(&type->handle);
    type->handle = wider, type->lb = lowest, type->extent = end - lowest;
}

static Type made(MPI_Datatype handle, int leaves) {
    Type type = {handle, 0, 0, 0, malloc((leaves + 1) * sizeof(MPI_Aint))};
    return type;
}

static void put(Type *type, const Type *member, MPI_Aint shift) {
    for (int i = 0; i < member->leaves; i++) type->at[type->leaves++] = shift + member->at[i];
}

static void drop(Type *type) {
    MPI_Type_free(&type->handle);
    free(type->at);
}

/* Numbers 0 to count - 1 in a random order. */
static void shuffle(int *order, int count) {
    for (int i = 0; i < count; i++) order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        int other = below(i + 1), kept = order[i];
        order[i] = order[other], order[other] = kept;
    }
}

static Type build(const Leaf *leaf, int layout, int depth);

/* Blocks that do not overlap, in any order, by the four constructors that take lists. */
static Type listed(const Type *old, int which) {
    int count = 1 + below(4), order[4], lengths[4], units[4], shorts[4], same = 1 + below(2);
    MPI_Aint bytes[4], reach[4], end = 0;
    int in_bytes = which & 1, is_block = which & 2;
    shuffle(order, count);
    for (int i = 0; i < count; i++) {
        lengths[i] = is_block ? same : below(3);
        reach[i] = end + (in_bytes ? 8 * below(4) : below(3) * old->extent);
        end = reach[i] + lengths[i] * old->extent;
    }
    for (int i = 0; i < count; i++) {
        bytes[i] = reach[order[i]];
        units[i] = (int)(old->extent ? bytes[i] / old->extent : 0);
        shorts[i] = lengths[order[i]];
    }
    Type type = made(MPI_DATATYPE_NULL, 12 * old->leaves);
    if (which == 0) MPI_Type_indexed(count, shorts, units, old->handle, &type.handle);
    if (which == 1) MPI_Type_create_hindexed(count, shorts, bytes, old->handle, &type.handle);
    if (which == 2) MPI_Type_create_indexed_block(count, same, units, old->handle, &type.handle);
    if (which == 3) MPI_Type_create_hindexed_block(count, same, bytes, old->handle, &type.handle);
    for (int i = 0; i < count; i++) {
        MPI_Aint start = in_bytes ? bytes[i] : units[i] * old->extent;
        for (int k = 0; k < shorts[i]; k++) put(&type, old, start + k * old->extent);
    }
    return type;
}

/* Equal blocks, with strides of either sign. */
static Type strided(const Type *old, int in_bytes) {
    int count = below(4), length = 1 + below(3), sign = below(2) ? 1 : -1;
    int stride = sign * (length + below(3));
    MPI_Aint step = in_bytes ? sign * (length * old->extent + 8 * below(4)) : stride * old->extent;
    Type type = made(MPI_DATATYPE_NULL, count * length * old->leaves);
    if (in_bytes) MPI_Type_create_hvector(count, length, step, old->handle, &type.handle);
    else MPI_Type_vector(count, length, stride, old->handle, &type.handle);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < length; k++) put(&type, old, i * step + k * old->extent);
    return type;
}

static Type block_of_array(const Type *old) {
    int sizes[2], lengths[2], starts[2], fortran = below(2);
    for (int i = 0; i < 2; i++) {
        lengths[i] = 1 + below(3), starts[i] = below(2);
        sizes[i] = lengths[i] + starts[i] + below(2);
    }
    Type type = made(MPI_DATATYPE_NULL, lengths[0] * lengths[1] * old->leaves);
    MPI_Type_create_subarray(2, sizes, lengths, starts, fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C,
                             old->handle, &type.handle);
    int outer = fortran ? 1 : 0, inner = 1 - outer;
    for (int i = 0; i < lengths[outer]; i++)
        for (int k = 0; k < lengths[inner]; k++)
            put(&type, old, ((starts[outer] + i) * sizes[inner] + starts[inner] + k) * old->extent);
    return type;
}

static Type structure(const Leaf *leaf, int layout, int depth) {
    int count = 1 + below(3), order[3], lengths[3], leaves = 0;
    MPI_Aint places[3], end = 0;
    MPI_Datatype handles[3];
    Type members[3];
    shuffle(order, count);
    for (int i = 0; i < count; i++) members[i] = build(leaf, layout, depth - 1);
    for (int i = 0; i < count; i++) {
        int m = order[i];
        lengths[m] = below(3), handles[m] = members[m].handle;
        places[m] = end - members[m].lb + 8 * below(3);
        end = places[m] + members[m].lb + lengths[m] * members[m].extent;
        leaves += lengths[m] * members[m].leaves;
    }
    Type type = made(MPI_DATATYPE_NULL, leaves);
    MPI_Type_create_struct(count, lengths, places, handles, &type.handle);
    for (int m = 0; m < count; m++) {
        for (int k = 0; k < lengths[m]; k++) put(&type, &members[m], places[m] + k * members[m].extent);
        drop(&members[m]);
    }
    return type;
}

static Type build(const Leaf *leaf, int layout, int depth) {
    Type type, old;
    if (depth == 0) {
        type = made(MPI_DATATYPE_NULL, 1);
        MPI_Type_dup(leaf->handles[layout], &type.handle);
        type.at[type.leaves++] = 0;
        finish_type(&type);
        return type;
    }
    int which = below(11);
    if (which == 10) {
        type = structure(leaf, layout, depth);
        finish_type(&type);
        return type;
    }
    old = build(leaf, layout, depth - 1);
    if (which < 4) type = listed(&old, which);
    else if (which < 6) type = strided(&old, which - 4);
    else if (which == 6) type = block_of_array(&old);
    else {
        int count = which == 7 ? below(5) : 1;
        type = made(MPI_DATATYPE_NULL, count * old.leaves);
        if (which == 7) MPI_Type_contiguous(count, old.handle, &type.handle);
        if (which == 8) MPI_Type_dup(old.handle, &type.handle);
        if (which == 9) MPI_Type_create_resized(old.handle, old.lb - 8, old.extent + 24, &type.handle);
        for (int k = 0; k < count; k++) put(&type, &old, k * old.extent);
    }
    drop(&old);
    finish_type(&type);
    return type;
}

/* A type with leaves, not too many of them. */
static Type random_type(const Leaf *leaf, int layout) {
    for (;;) {
        Type type = build(leaf, layout, DEPTH);
        if (type.leaves > 0 && type.leaves <= LEAVES_MAX && type.extent * 50 < BYTES_MAX) {
            MPI_Type_commit(&type.handle);
            return type;
        }
        drop(&type);
    }
}

static Leaf random_leaf(void) {
    static const Leaf plain = {1, {sizeof(int)}, {{0}, {0}}, {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL}};
    static const Leaf mixed = {3, {4, 8, 1}, {{0, 8, 16}, {20, 0, 12}}, {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL}};
    MPI_Datatype basics[] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
    int ones[] = {1, 1, 1};
    Leaf leaf = below(2) ? plain : mixed;
    for (int layout = 0; layout < 2; layout++)
        MPI_Type_create_struct(leaf.parts, ones, leaf.places[layout], basics, &leaf.handles[layout]);
    return leaf;
}

/* Copies between memory and a packed stream, leaf by leaf; `into` says whether into memory. */
static void walk(const Leaf *leaf, int layout, const Type *type, char *memory, char *stream, int leaves, int into) {
    for (int i = 0; i < leaves; i++) {
        char *place = memory + (i / type->leaves) * type->extent + type->at[i % type->leaves];
        for (int part = 0; part < leaf->parts; part++) {
            char *there = place + leaf->places[layout][part];
            memcpy(into ? there : stream, into ? stream : there, leaf->sizes[part]);
            stream += leaf->sizes[part];
        }
    }
}

static void transfer(int other, char *from, int sent, const Type *out, char *to, int taken, const Type *in, int parts) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int way = below(3);
    if (way == 0) MPI_Irecv(to, taken, in->handle, other, 5, MPI_COMM_WORLD, &requests[0]);
    if (below(2)) MPI_Issend(from, sent, out->handle, other, 5, MPI_COMM_WORLD, &requests[1]);
    else MPI_Isend(from, sent, out->handle, other, 5, MPI_COMM_WORLD, &requests[1]);
    if (way == 1) MPI_Irecv(to, taken, in->handle, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &requests[0]);
    if (way == 2) {
        MPI_Message message;
        MPI_Mprobe(other, 5, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Imrecv(to, taken, in->handle, &message, &requests[0]);
    }
    MPI_Waitall(2, requests, statuses);
    MPI_Count elements;
    MPI_Get_elements_x(&statuses[0], in->handle, &elements);
    CHECK_EQ(elements, (MPI_Count)sent * out->leaves * parts);
}

static void round_trip(int other) {
    Leaf leaf = random_leaf();
    Type out = random_type(&leaf, 0), in = random_type(&leaf, 1);
    int width = 0;
    for (int part = 0; part < leaf.parts; part++) width += leaf.sizes[part];
    /* A third of the messages are long ones, up to BYTES_MAX. */
    int most = below(3) ? 8 : BYTES_MAX / (out.leaves * width);
    int sent = 1 + below(most), leaves = sent * out.leaves, taken = (leaves + in.leaves - 1) / in.leaves;
    /* Room on both sides of the origin: displacements may be negative. */
    size_t source_room = (sent + 2) * (out.extent + 64) + 100000, room = (taken + 2) * (in.extent + 64) + 100000;
    char *source = malloc(2 * source_room), *target = calloc(2, room), *expected = calloc(2, room);
    char *stream = malloc((size_t)leaves * width + 1), *packed = malloc((size_t)leaves * width + 1);
    for (size_t i = 0; i < 2 * source_room; i++) source[i] = (char)(i * 2654435761u >> 11);
    walk(&leaf, 0, &out, source + source_room, stream, leaves, 0);
    walk(&leaf, 1, &in, expected + room, stream, leaves, 1);
    int position = 0;
    MPI_Pack(source + source_room, sent, out.handle, packed, leaves * width, &position, MPI_COMM_SELF);
    CHECK_EQ(position, leaves * width);
    CHECK(memcmp(packed, stream, position) == 0);
    transfer(other, source + source_room, sent, &out, target + room, taken, &in, leaf.parts);
    CHECK(memcmp(target, expected, 2 * room) == 0);
    free(source), free(target), free(expected), free(stream), free(packed);
    for (int layout = 0; layout < 2; layout++) MPI_Type_free(&leaf.handles[layout]);
    drop(&out), drop(&in);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    int other = rank ^ 1;
    for (int i = 0; i < ROUNDS; i++) {
        /* Partners draw the same types; ranks without a partner talk with themselves. */
        seed = 1000 * i + rank / 2;
        round_trip(other < size ? other : rank);
    }
    return finish();
}
