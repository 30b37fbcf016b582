# A likelihood whose data are in pieces, from R: in this process, or each held by a worker of a cluster of parallel's.
#
#     Rscript shards.R        # in this process
#     Rscript shards.R 2      # two R workers: the same estimates
#
# Prints the estimates of a logistic regression and their standard errors, which are glm()'s.

suppressPackageStartupMessages(library(gradops))

# What a shard, a data frame, adds to the negative log-likelihood. It runs where the shard is.
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
