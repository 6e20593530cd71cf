// COHORT_MALLOC=keep: a block that was freed is not given back to the kernel, so the next one of its size meets the
// same pages. One of this size is otherwise mapped and unmapped each time.
//# ranks: 2
//# settings: COHORT_MALLOC=keep

enum { BYTES = 48 << 20, ROUNDS = 4, PAGES = BYTES / 4096 };
#include "pages.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    use();
    long before = faults();
    for (int round = 0; round < ROUNDS; round++) use();
    CHECK(faults() - before < PAGES / 16);
    return finish();
}
