# Messages and collectives of Rmpi, without spawned processes.
library(Rmpi)
rank <- mpi.comm.rank(0)
size <- mpi.comm.size(0)
total <- mpi.allreduce(as.double(rank + 1), type = 2, op = "sum", comm = 0)
text <- list(a = 1:3, b = "text")
if (rank == 0) invisible(mpi.bcast.Robj(text, 0, 0)) else text <- mpi.bcast.Robj(rank = 0, comm = 0)
ring <- mpi.sendrecv(as.integer(rank), 1, (rank + 1) %% size, 5, integer(1), 1, (rank - 1) %% size, 5, comm = 0)
all <- mpi.allgather(as.integer(rank * rank), type = 1, rdata = integer(size), comm = 0)
for (turn in 0:(size - 1)) {
    mpi.barrier(0)
    # In one piece: launchers pass on each as it comes.
    if (turn == rank) cat(paste0(paste(c("values", rank, size, total, text$b, ring, all), collapse = " "), "\n"))
}
invisible(mpi.barrier(0))
mpi.quit(save = "no")
