# A likelihood with sharded data, from R: the shards are in this process, or on the workers of a parallel cluster.
#
#     Rscript shards.R        # in this process
#     Rscript shards.R 2      # two R workers: the same estimates
#
# Prints the estimates of a logistic regression and their standard errors, which equal those of glm().

suppressPackageStartupMessages(library(gradops))

# Returns the negative log-likelihood of a shard, a data frame. It runs where the shard is.
loss <- function(beta, shard) {
  eta <- model.matrix(~ spontaneous + induced, shard) %*% beta
  -sum(dbinom(shard$case, 1, plogis(eta), log = TRUE))
}

count <- as.integer(c(commandArgs(TRUE), 0)[1])
cluster <- if (count > 0) parallel::makeCluster(count)
total <- objective(loss, data = split(infert, infert$education), cluster = cluster)
beta <- nlminb(c(0, 0, 0), total$fn, total$gr, total$he)$par
cat(format(c(beta, sqrt(diag(solve(total$he(beta))))), digits = 15, trim = TRUE), "\n")
if (count > 0) parallel::stopCluster(cluster)
