//! The texts of `--help` and `--version`.

/// `--version`: what this is, which programs it runs, and over which networks.
#[must_use]
pub fn version() -> String {
    format!(
        "pip-exec (Cohort) {}, commit {}\n\
         ABIs: MPICH (libmpi.so.12, libmpich.so.12; C, C++, Fortran), MPI-5 (libmpi_abi.so.1; C, C++),\n\
         \x20     Open MPI (libmpi.so.40; C, C++, Fortran)\n\
         networks: shared address space, libfabric, TCP\n",
        env!("CARGO_PKG_VERSION"),
        option_env!("COHORT_COMMIT").unwrap_or("unknown"),
    )
}

/// How `--help` begins.
pub const USAGE: &str = "\
usage: pip-exec [options] -n N PROGRAM [ARG...] [: [options] -n M PROGRAM [ARG...]]...

Runs N ranks of a program, or of several, in one address space. mpiexec and mpirun are other names.

";

/// What follows the options.
pub const REMARKS: &str = "
Standard input goes to rank 0. The job ends when all ranks have ended or one fails;
the status is that of the first that failed, 128 + N if signal N killed it.
COHORT_* environment variables tune the runtime (--help=settings); a wrong one lists the valid ones.
";

/// How `--help` ends.
pub const EXAMPLES: &str = "
examples:
  pip-exec -n 4 ./app input.dat
  pip-exec -n 1 ./master : -n 7 -wdir /tmp ./worker
  pip-exec -n 8 --bind-to core -genv OMP_NUM_THREADS 1 --timeout 600 ./app
";
