# A cluster of snow's, whose workers are spawned.
library(Rmpi)
library(snow)
kind <- "@KIND@"
workers <- if (kind == "MPI") makeCluster(@WORKERS@, type = kind) else makeCluster(rep("localhost", @WORKERS@), type = kind)
cat("values of calls", unlist(clusterApply(workers, 1:6, function(x) x^2)), "\n")
cat("values of a list", sum(unlist(parLapply(workers, 1:100, function(x) x))), "\n")
cat("values of balanced calls", unlist(clusterApplyLB(workers, 5:1, function(x) x + 1)), "\n")
matrix <- matrix(1:100, 10)
cat("values of a matrix", parMM(workers, matrix, matrix)[10, ], "\n")
stopCluster(workers)
mpi.quit()
