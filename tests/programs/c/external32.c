// The data representation external32: every row of the standard's table (MPI-5.0 section 14.5.2), by its length, by
// the bytes of a value, and there and back; and a value for which it has no room.
//# ranks: 1
//# abi: mpich mpi5 openmpi
#include "check.h"
#include <stdint.h>
#include <wchar.h>

static unsigned char there[256];

// Bytes of one element, and of three.
static void length(const char *name, MPI_Datatype type, int bytes) {
    MPI_Aint size;
    if (type == MPI_DATATYPE_NULL) return;
    MPI_Pack_external_size("external32", 1, type, &size);
    if (size != bytes) fprintf(stderr, "%s:\n", name);
    CHECK_EQ(size, bytes);
    MPI_Pack_external_size("external32", 3, type, &size);
    CHECK_EQ(size, 3 * bytes);
    // Data of any value goes there and back: small numbers, in memory of any length.
    unsigned char zeros[96] = {0}, back[96];
    MPI_Aint position = 0;
    MPI_Aint lb, extent;
    int native;
    MPI_Type_size(type, &native);
    MPI_Type_get_extent(type, &lb, &extent);
    memset(back, extent == native ? 0xee : 0, sizeof back);
    MPI_Pack_external("external32", zeros, 3, type, there, sizeof there, &position);
    CHECK_EQ(position, 3 * bytes);
    position = 0;
    MPI_Unpack_external("external32", there, 3 * bytes, &position, back, 3, type);
    CHECK_EQ(position, 3 * bytes);
    CHECK(memcmp(zeros, back, (size_t)native) == 0);
}
#define LENGTH(type, bytes) length(#type, type, bytes)

static void table(void) {
    LENGTH(MPI_PACKED, 1);
    LENGTH(MPI_BYTE, 1);
    LENGTH(MPI_CHAR, 1);
    LENGTH(MPI_UNSIGNED_CHAR, 1);
    LENGTH(MPI_SIGNED_CHAR, 1);
    LENGTH(MPI_WCHAR, 2);
    LENGTH(MPI_SHORT, 2);
    LENGTH(MPI_UNSIGNED_SHORT, 2);
    LENGTH(MPI_INT, 4);
    LENGTH(MPI_LONG, 4);
    LENGTH(MPI_UNSIGNED, 4);
    LENGTH(MPI_UNSIGNED_LONG, 4);
    LENGTH(MPI_LONG_LONG_INT, 8);
    LENGTH(MPI_LONG_LONG, 8);
    LENGTH(MPI_UNSIGNED_LONG_LONG, 8);
    LENGTH(MPI_FLOAT, 4);
    LENGTH(MPI_DOUBLE, 8);
    LENGTH(MPI_LONG_DOUBLE, 16);
    LENGTH(MPI_C_BOOL, 1);
    LENGTH(MPI_INT8_T, 1);
    LENGTH(MPI_INT16_T, 2);
    LENGTH(MPI_INT32_T, 4);
    LENGTH(MPI_INT64_T, 8);
    LENGTH(MPI_UINT8_T, 1);
    LENGTH(MPI_UINT16_T, 2);
    LENGTH(MPI_UINT32_T, 4);
    LENGTH(MPI_UINT64_T, 8);
    LENGTH(MPI_AINT, 8);
    LENGTH(MPI_COUNT, 8);
    LENGTH(MPI_OFFSET, 8);
    LENGTH(MPI_C_COMPLEX, 2 * 4);
    LENGTH(MPI_C_FLOAT_COMPLEX, 2 * 4);
    LENGTH(MPI_C_DOUBLE_COMPLEX, 2 * 8);
    LENGTH(MPI_C_LONG_DOUBLE_COMPLEX, 2 * 16);
    LENGTH(MPI_CXX_BOOL, 1);
    LENGTH(MPI_CXX_FLOAT_COMPLEX, 2 * 4);
    LENGTH(MPI_CXX_DOUBLE_COMPLEX, 2 * 8);
    LENGTH(MPI_CXX_LONG_DOUBLE_COMPLEX, 2 * 16);
}

static void of_fortran(void) {
    LENGTH(MPI_CHARACTER, 1);
    LENGTH(MPI_LOGICAL, 4);
    LENGTH(MPI_INTEGER, 4);
    LENGTH(MPI_REAL, 4);
    LENGTH(MPI_DOUBLE_PRECISION, 8);
    LENGTH(MPI_COMPLEX, 2 * 4);
    LENGTH(MPI_DOUBLE_COMPLEX, 2 * 8);
    LENGTH(MPI_INTEGER1, 1);
    LENGTH(MPI_INTEGER2, 2);
    LENGTH(MPI_INTEGER4, 4);
    LENGTH(MPI_INTEGER8, 8);
    LENGTH(MPI_REAL4, 4);
    LENGTH(MPI_REAL8, 8);
    LENGTH(MPI_REAL16, 16);
    LENGTH(MPI_COMPLEX8, 2 * 4);
    LENGTH(MPI_COMPLEX16, 2 * 8);
    LENGTH(MPI_COMPLEX32, 2 * 16);
#if MPI_VERSION >= 5
    LENGTH(MPI_LOGICAL1, 1);
    LENGTH(MPI_LOGICAL2, 2);
    LENGTH(MPI_LOGICAL4, 4);
    LENGTH(MPI_LOGICAL8, 8);
    LENGTH(MPI_LOGICAL16, 16);
#endif
    // Pairs are made of their members.
    LENGTH(MPI_2INT, 8);
    LENGTH(MPI_LONG_INT, 8);
    LENGTH(MPI_FLOAT_INT, 8);
    LENGTH(MPI_DOUBLE_INT, 12);
    LENGTH(MPI_SHORT_INT, 6);
    LENGTH(MPI_LONG_DOUBLE_INT, 20);
}

// The bytes of a value, and the value that comes back.
static void value(const void *memory, MPI_Datatype type, const char *bytes, int count) {
    MPI_Aint position = 0;
    unsigned char back[64] = {0};
    int native;
    MPI_Type_size(type, &native);
    memset(there, 0xee, sizeof there);
    MPI_Pack_external("external32", memory, 1, type, there, sizeof there, &position);
    CHECK_EQ(position, count);
    CHECK(memcmp(there, bytes, (size_t)count) == 0);
    CHECK_EQ(there[count], 0xee);
    position = 0;
    MPI_Unpack_external("external32", there, count, &position, back, 1, type);
    // Of x87 numbers 10 bytes count.
    CHECK(memcmp(back, memory, type == MPI_LONG_DOUBLE ? 10 : (size_t)native) == 0);
}
#define VALUE(c_type, type, c_value, bytes) value(&(c_type){c_value}, type, bytes, sizeof bytes - 1)

static void values(void) {
    VALUE(long, MPI_LONG, 1, "\0\0\0\1");
    VALUE(long, MPI_LONG, -2, "\xff\xff\xff\xfe");
    VALUE(long, MPI_LONG, INT32_MAX, "\x7f\xff\xff\xff");
    VALUE(long, MPI_LONG, INT32_MIN, "\x80\0\0\0");
    VALUE(unsigned long, MPI_UNSIGNED_LONG, UINT32_MAX, "\xff\xff\xff\xff");
    VALUE(long long, MPI_LONG_LONG, -2, "\xff\xff\xff\xff\xff\xff\xff\xfe");
    VALUE(int64_t, MPI_INT64_T, 258, "\0\0\0\0\0\0\1\2");
    VALUE(int, MPI_INT, 0x01020304, "\1\2\3\4");
    VALUE(short, MPI_SHORT, 0x0102, "\1\2");
    VALUE(wchar_t, MPI_WCHAR, 0x20ac, "\x20\xac");
    VALUE(double, MPI_DOUBLE, 1.0, "\x3f\xf0\0\0\0\0\0\0");
    VALUE(float, MPI_FLOAT, -2.0f, "\xc0\0\0\0");
    VALUE(long double, MPI_LONG_DOUBLE, 1.0L, "\x3f\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    VALUE(int, MPI_LOGICAL, 1, "\0\0\0\1");
    struct { long value; int index; } both = {-3, 7};
    MPI_Aint position = 0;
    MPI_Pack_external("external32", &both, 1, MPI_LONG_INT, there, sizeof there, &position);
    CHECK_EQ(position, 8);
    CHECK(memcmp(there, "\xff\xff\xff\xfd\0\0\0\7", 8) == 0);
}

// Elements of several lengths in one type.
static void derived(void) {
    struct { long first; char middle[3]; double last; long behind[2]; } in = {-5, "ab", 0.5, {6, -7}}, out = {0};
    MPI_Datatype type;
    MPI_Aint places[] = {(char *)&in.first - (char *)&in, in.middle - (char *)&in, (char *)&in.last - (char *)&in,
                         (char *)in.behind - (char *)&in}, size, position = 0;
    MPI_Datatype members[] = {MPI_LONG, MPI_CHAR, MPI_DOUBLE, MPI_LONG};
    MPI_Type_create_struct(4, (int[]){1, 3, 1, 2}, places, members, &type);
    MPI_Type_commit(&type);
    MPI_Pack_external_size("external32", 2, type, &size);
    CHECK_EQ(size, 2 * (4 + 3 + 8 + 8));
    MPI_Pack_external("external32", &in, 1, type, there, 23, &position);
    CHECK_EQ(position, 23);
    CHECK(memcmp(there, "\xff\xff\xff\xfb" "ab\0" "\x3f\xe0\0\0\0\0\0\0" "\0\0\0\6\xff\xff\xff\xf9", 23) == 0);
    position = 0;
    MPI_Unpack_external("external32", there, 23, &position, &out, 1, type);
    CHECK(out.first == -5 && !strcmp(out.middle, "ab") && out.last == 0.5 && out.behind[0] == 6 && out.behind[1] == -7);
    position = 0;
    CHECK_EQ(class_of(MPI_Pack_external("external32", &in, 1, type, there, 22, &position)), MPI_ERR_TRUNCATE);
    MPI_Type_free(&type);
}

static void out_of_range(MPI_Datatype type, const void *memory) {
    MPI_Aint position = 0;
    int code = MPI_Pack_external("external32", memory, 1, type, there, sizeof there, &position);
    CHECK_EQ(class_of(code), MPI_ERR_CONVERSION);
    CHECK_EQ(position, 0);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    table();
    of_fortran();
    values();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    derived();
    out_of_range(MPI_LONG, &(long){INT32_MAX + 1L});
    out_of_range(MPI_LONG, &(long){INT32_MIN - 1L});
    out_of_range(MPI_UNSIGNED_LONG, &(unsigned long){UINT32_MAX + 1UL});
    out_of_range(MPI_WCHAR, &(wchar_t){0x1f600});
    return finish();
}
