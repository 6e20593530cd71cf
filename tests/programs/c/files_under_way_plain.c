// With COHORT_IO=plain operations are done in the calls that start them, with the same results.
//# ranks: 1 3
//# abi: mpich
//# settings: COHORT_IO=plain
//# stdout: passed
#define PLAIN
#include "files_under_way.c"
