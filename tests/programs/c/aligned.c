// Memory of MPI begins where the program asks for it (mpi_minimum_memory_alignment; MPI 4.1 9.2, 12.2.2, 12.2.3): each
// block, each part of a window, the first part of a shared window without gaps. A value without a meaning is an error.
//# ranks: 1 4
#include "check.h"
#include <stdint.h>

static MPI_Comm here; // of the ranks that share memory

static MPI_Info hints(const char *align, const char *apart) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_minimum_memory_alignment", align);
    MPI_Info_set(info, "alloc_shared_noncontig", apart);
    return info;
}

static void check_place(const void *place, long align) { CHECK_EQ((uintptr_t)place % align, 0); }

static void blocks(MPI_Info info, long align) {
    for (long bytes = 1; bytes < 8 << 20; bytes *= 7) {
        char *block;
        CHECK_EQ(MPI_Alloc_mem(bytes, info, &block), MPI_SUCCESS);
        check_place(block, align);
        memset(block, 1, bytes);
        CHECK_EQ(MPI_Free_mem(block), MPI_SUCCESS);
    }
}

static int bytes_of(int member) { return member == 1 ? 99999 : 24 * (member + 1); }

// Each member writes its left neighbour's part, which has zeros before.
static void use(MPI_Comm comm, MPI_Win win, char *part) {
    static char sent[100000], zeros[100000];
    int me, members;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &members);
    int left = (me + members - 1) % members;
    CHECK_EQ(memcmp(part, zeros, bytes_of(me)), 0);
    memset(sent, me + 1, bytes_of(left));
    MPI_Win_fence(0, win);
    MPI_Put(sent, bytes_of(left), MPI_CHAR, left, 0, bytes_of(left), MPI_CHAR, win);
    MPI_Win_fence(0, win);
    for (int at = 0; at < bytes_of(me); at++) CHECK_EQ(part[at], (me + 1) % members + 1);
    MPI_Win_free(&win);
}

static void windows(MPI_Info info, MPI_Info apart, long align) {
    int me, unit;
    char *part, *first;
    MPI_Aint bytes;
    MPI_Win win;
    MPI_Win_allocate(bytes_of(rank), 1, info, MPI_COMM_WORLD, &part, &win);
    check_place(part, align);
    use(MPI_COMM_WORLD, win, part);

    MPI_Comm_rank(here, &me);
    MPI_Win_allocate_shared(bytes_of(me), 1, apart, here, &part, &win);
    check_place(part, align);
    use(here, win, part);

    MPI_Win_allocate_shared(bytes_of(me), 1, info, here, &part, &win);
    MPI_Win_shared_query(win, 0, &bytes, &unit, &first);
    check_place(first, align);
    for (int member = 0; member < me; member++) first += bytes_of(member);
    CHECK(first == part);
    use(here, win, part);
}

// One member alone has a hint: all of them have the same idea of where the parts are, and each of its own part. The
// alignment holds for the first part, and gaps there are none.
static void one_asks(MPI_Info info, int who, long align) {
    int me, members, unit;
    char *part, *first, *place, *behind;
    MPI_Aint bytes;
    MPI_Win win;
    MPI_Comm_rank(here, &me);
    MPI_Comm_size(here, &members);
    MPI_Win_allocate_shared(bytes_of(me), 1, me == who % members ? info : MPI_INFO_NULL, here, &part, &win);
    MPI_Win_shared_query(win, 0, &bytes, &unit, &first);
    check_place(first, align);
    behind = first;
    for (int member = 0; member < members; member++) {
        long offset[2];
        MPI_Win_shared_query(win, member, &bytes, &unit, &place);
        CHECK_EQ(bytes, bytes_of(member));
        offset[0] = place - first, offset[1] = first - place;
        MPI_Allreduce(MPI_IN_PLACE, offset, 2, MPI_LONG, MPI_MAX, here);
        CHECK_EQ(offset[0], -offset[1]);
        CHECK_EQ(offset[0], place - first);
        if (member == me) CHECK(place == part);
        // The others have not allowed gaps.
        if (members > 1) CHECK(place == behind);
        behind = place + bytes;
    }
    use(here, win, part);
}

static void mistakes(void) {
    const char *values[] = {"48", "0", "-64", "4k", "a lot"};
    char *block;
    MPI_Win win;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(here, MPI_ERRORS_RETURN);
    for (int value = 0; value < 5; value++) {
        MPI_Info info = hints(values[value], "true");
        CHECK_EQ(class_of(MPI_Alloc_mem(64, info, &block)), MPI_ERR_INFO_VALUE);
        CHECK_EQ(class_of(MPI_Win_allocate(64, 1, info, MPI_COMM_WORLD, &block, &win)), MPI_ERR_INFO_VALUE);
        CHECK_EQ(class_of(MPI_Win_allocate_shared(64, 1, info, here, &block, &win)), MPI_ERR_INFO_VALUE);
        MPI_Info_free(&info);
    }
    MPI_Info info = hints("4611686018427387904", "true"); // 2^62: more than there are addresses
    CHECK_EQ(class_of(MPI_Alloc_mem(64, info, &block)), MPI_ERR_NO_MEM);
    CHECK_EQ(class_of(MPI_Win_allocate(64, 1, info, MPI_COMM_WORLD, &block, &win)), MPI_ERR_NO_MEM);
    MPI_Info_free(&info);
    // Sizes whose sum is beyond what can be counted, and exactly 0 if that is not seen.
    const MPI_Aint quarter = (MPI_Aint)1 << 62;
    for (int apart = 0; apart < 2; apart++) {
        info = hints("1", apart ? "true" : "false");
        CHECK_EQ(class_of(MPI_Win_allocate_shared(quarter, 1, info, here, &block, &win)), MPI_ERR_NO_MEM);
        MPI_Info_free(&info);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    for (long align = 1; align <= 4 << 20; align *= 4) {
        char value[32];
        snprintf(value, sizeof value, "%ld", align);
        MPI_Info info = hints(value, "false"), apart = hints(value, "true");
        blocks(info, align);
        windows(info, apart, align);
        for (int who = 0; who < 2; who++) {
            one_asks(info, who, align);
            one_asks(apart, who, align);
        }
        MPI_Info_free(&info);
        MPI_Info_free(&apart);
    }
    mistakes();
    MPI_Comm_free(&here);
    return finish();
}
