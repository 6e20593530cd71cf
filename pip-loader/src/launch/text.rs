//! The texts of `--help` and `--version`.

/// `--version`.
pub const VERSION: &str = concat!("pip-exec (Cohort) ", env!("CARGO_PKG_VERSION"), "\n");

/// `--help`: one screen.
pub const HELP: &str = "\
usage: pip-exec [options] -n N PROGRAM [ARG...] [: [options] -n M PROGRAM [ARG...]]...

Runs N ranks of a program, or of several, in one address space.

  -n, -np N            ranks of this program (default 1). Under a process manager (mpiexec,
                       srun): ranks on each node; -n 4,2: on the first, on the second
  -env NAME VALUE      set an environment variable for this program
  -genv NAME VALUE     the same for all programs
  -wdir DIR            working directory of this program
  -l, --label          begin each line of output with its rank: [3] ...
  --bind-to none|core|l3cache|numa|socket
                       bind each rank to a core, or to what shares a cache ... with its core
  --map-by core|l3cache|numa|socket|node
                       order in which ranks take cores: one of each cache ... in turn; binds
                       them. node: deal out rank numbers over nodes
  --topology           show this machine and where the ranks would run, and start none
  -c CPU               bind one rank to each core, beginning with that of this CPU
  --timeout SECONDS    end the job after this time, with status 124
  --hosts A:4,B:4      start on these hosts, which take 4 ranks each, by the process
                       manager that is installed; --launcher hydra|srun|prterun
                       chooses one, --dry-run only prints its command line
  -memory-alloc-kinds KINDS
                       kinds of memory that the programs pass to MPI (MPI 4.1, 11.5)
  --isolate            one address space per rank, joined by the network (for debugging)
  --no-mpi             run programs that use no MPI; needs no Cohort libraries
  --keep-pmi           let ranks see the process manager's variables (PMI_*, PMIX_*)
  --policies           list the progress policies, which are the values of COHORT_PROGRESS
  --version, --help

Standard input goes to rank 0. The job ends when all ranks have ended or one fails;
the status is that of the first that failed, 128 + N if signal N killed it.
COHORT_* environment variables tune the runtime; a wrong one lists the valid ones.

examples:
  pip-exec -n 4 ./app input.dat
  pip-exec --hosts a:4,b:4 -n 8 ./app
  pip-exec -n 1 ./master : -n 7 -wdir /tmp ./worker
  pip-exec -n 8 --bind-to core -genv OMP_NUM_THREADS 1 --timeout 600 ./app
";
