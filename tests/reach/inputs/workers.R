# Workers that Rmpi spawns: it starts a shell script for each, which starts R.
library(Rmpi)
mpi.spawn.Rslaves(nslaves = @WORKERS@)
who <- mpi.remote.exec(paste(mpi.comm.rank(), "of", mpi.comm.size()))
cat("values of workers", unlist(who), "\n")
double <- function(x) x * 2
mpi.bcast.Robj2slave(double)
cat("values of a function", mpi.parSapply(1:10, double), "\n")
cat("values of sums", unlist(mpi.remote.exec(mpi.allreduce(mpi.comm.rank(comm = 1), type = 1, comm = 1), ret = FALSE)),
    mpi.allreduce(0L, type = 1, comm = 1), "\n")
mpi.close.Rslaves()
# Once more: the first ones have parted.
mpi.spawn.Rslaves(nslaves = 1)
cat("values of another", unlist(mpi.remote.exec(mpi.comm.size())), "\n")
mpi.close.Rslaves()
mpi.quit()
