//! Symbols that the precompiled core library refers to and that must not come from elsewhere.
//!
//! Written in assembly, so that they are hidden and that the compiler does not look into them.

cohort_arch::no_unwinder!();

// The strings of MPI are short names, and rarely come.
cohort_arch::string_length!();
