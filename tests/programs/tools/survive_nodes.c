// Works until somebody fails; then those who are left go on, until so many are. All data is right.
//   survive_nodes LEFT SIGN: makes the file SIGN when all are at it, and SIGN.passed at the end.
#include "../c/check.h"
#include "../c/survival.h"
#include <stdio.h>
#include <unistd.h>
enum { LONG = 300000 };
static char out[LONG], in[LONG];

static int ring(MPI_Comm comm, int me, int members, int step, int length) {
    int next = (me + 1) % members, last = (me + members - 1) % members;
    MPI_Request requests[2];
    memset(out, me + step, length);
    memset(in, 99, length);
    int code = MPI_Irecv(in, length, MPI_CHAR, step % 5 ? last : MPI_ANY_SOURCE, step % 1000, comm, requests);
    if (code == MPI_SUCCESS) code = MPI_Isend(out, length, MPI_CHAR, next, step % 1000, comm, requests + 1);
    if (code == MPI_SUCCESS) code = MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS) return code;
    for (int i = 0; i < length; i += 97) CHECK_EQ(in[i], (char)(last + step));
    return code;
}

// Works for so many steps, or until somebody fails.
static int work(MPI_Comm comm, int steps, const char *sign) {
    int me, members, code = MPI_SUCCESS;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &members);
    for (int step = 1; code == MPI_SUCCESS && step <= steps; step++) {
        long mine = me + step, sum = 0;
        code = ring(comm, me, members, step, step % 3 == 0 ? LONG : step % 3 == 1 ? 8 : 5000);
        if (code == MPI_SUCCESS) code = MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
        if (code == MPI_SUCCESS) CHECK_EQ(sum, (long)members * (members - 1) / 2 + (long)members * step);
        if (code == MPI_SUCCESS && step == 20 && sign != NULL && me == 0) fclose(fopen(sign, "w"));
        usleep(200);
    }
    return code;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    int wanted = atoi(argv[1]), members, code = 0;
    MPI_Comm comm = MPI_COMM_WORLD, smaller;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    const char *sign = argv[2];
    for (members = size; members > wanted; sign = NULL) {
        code = class_of(work(comm, 1 << 30, sign));
        CHECK(code == MPIX_ERR_PROC_FAILED || code == MPIX_ERR_PROC_FAILED_PENDING || code == MPIX_ERR_REVOKED ||
              code == MPI_ERR_IN_STATUS);
        CHECK_EQ(MPIX_Comm_revoke(comm), MPI_SUCCESS);
        CHECK_EQ(MPIX_Comm_shrink(comm, &smaller), MPI_SUCCESS);
        if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
        comm = smaller;
        MPI_Comm_size(comm, &members);
    }
    CHECK_EQ(members, wanted);
    CHECK_EQ(work(comm, 60, NULL), MPI_SUCCESS);
    int flag = 3, me;
    CHECK_EQ(MPIX_Comm_agree(comm, &flag), MPI_SUCCESS);
    CHECK_EQ(flag, 3);
    MPI_Comm_rank(comm, &me);
    if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
    MPI_Finalize();
    if (me == 0) {
        char passed[4096];
        snprintf(passed, sizeof passed, "%s.passed", argv[2]);
        fclose(fopen(passed, "w"));
        puts("passed");
    }
    return 0;
}
