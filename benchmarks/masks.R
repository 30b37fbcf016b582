# Times the functions of base R and stats that gradops masks, on plain R vectors, and R's own functions.
#
# The vectors have 100 and 4 numbers. Each ratio of times is the median of 5 runs, in turns.
#
#     Rscript benchmarks/masks.R [name ...]

suppressMessages(library(gradops))
masked <- gradops:::masked_functions(ls("package:gradops", all.names = TRUE))
home <- stats::setNames(rep(names(masked), lengths(masked)), unlist(masked))

# Distributions: the parameters of each family, and the range of its quantiles. All other calls are written out.
families <- list(
  norm = list(0, 1), lnorm = list(0, 1), exp = list(2), gamma = list(2, 1), beta = list(2, 3), t = list(5),
  unif = list(0, 1), logis = list(0, 1), weibull = list(2, 1), cauchy = list(0, 1), chisq = list(5), f = list(4, 6),
  binom = list(9, 0.4), pois = list(3), geom = list(0.3), hyper = list(9, 8, 5), nbinom = list(4, 0.5)
)
of_family <- function(kind, first) {
  lapply(names(families), function(family) as.call(c(as.name(paste0(kind, family)), first, families[[family]])))
}
counts <- c("dbinom", "dpois", "dgeom", "dhyper", "dnbinom")
calls <- c(
  lapply(of_family("d", quote(u)), function(call) {
    if (deparse(call[[1]]) %in% counts) call[[2]] <- quote(k)
    call
  }),
  of_family("p", quote(u)), of_family("q", quote(u)), of_family("r", quote(n)),
  as.list(expression(
    ptukey(u, 3, 5), qtukey(v, 3, 5), psignrank(k, 9), pwilcox(k, 5, 6), dmultinom(k, prob = u),
    M %*% N, x %o% y, x %x% y, S@cells, c(x, y), array(x, c(2, n / 2)), matrix(x, 2), diag(x), `diag<-`(M, r),
    drop(M), outer(x, y), kronecker(x, y), crossprod(M), tcrossprod(M), norm(M), solve(Q), chol2inv(U),
    backsolve(U, r), forwardsolve(Q, r), eigen(Q), svd(M), qr.Q(D), qr.coef(D, r), qr.fitted(D, r), qr.resid(D, r),
    qr.solve(Q, r), rowSums(M), colSums(M), rowMeans(M), colMeans(M), sweep(M, 2, r), scale(M),
    pmax(x, y), pmin(x, y), ifelse(x > y, x, y), which(x > y), which.max(x), which.min(x), zapsmall(x), unlist(L),
    isTRUE(TRUE), isFALSE(TRUE), Vectorize(f), apply(M, 1, sum), sapply(L, sum), vapply(L, sum, 0), mapply(f, x, y),
    tapply(x, g, sum), by(x, g, sum), unsplit(G, g), ave(x, g),
    atan2(x, y), beta(u, v), lbeta(u, v), choose(5, k), lchoose(5, k), psigamma(u, 2), besselI(u, 1), besselJ(u, 1),
    besselK(u, 1), besselY(u, 1), complex(real = x, imaginary = y),
    casefold(s), cat(s, file = nul), chartr("a", "b", s), endsWith(s, "a"), startsWith(s, "a"), formatC(x),
    gsub("a", "b", s), sub("a", "b", s), nchar(s), paste(s, s), paste0(s, s), prettyNum(x), sprintf("%s-%s", s, s),
    strsplit(s, "a"), substr(s, 1, 2), substring(s, 1, 2), tolower(s), toupper(s), trimws(s),
    approx(t, y, u), approxfun(t, y), spline(t, y), splinefun(t, y), convolve(x, y), fft(x), mvfft(M), embed(x, 2),
    filter(x, c(1, 1)), toeplitz(r), dist(M), mahalanobis(M, r, Q), cor(x, y), cov(x, y), cov2cor(Q), sd(x), var(x),
    weighted.mean(x, u), lm.fit(M, r), lm.wfit(M, r, v[seq_along(r)]), deriv(~ a^2, "a"), deriv3(~ a^2, "a"),
    integrate(bell, 0, 1), nlm(square, 1), nlminb(1, square), optim(1, square, method = "BFGS"),
    optimise(square, c(-1, 1)), optimize(square, c(-1, 1)), uniroot(level, c(-9, 9)),
    SSasymp(x, 1, 1, 1), SSasympOff(x, 1, 1, 1), SSasympOrig(x, 1, 1), SSbiexp(x, 1, 1, 1, 1), SSfol(1, x, 1, 1, 1),
    SSfpl(x, 1, 1, 1, 1), SSgompertz(x, 1, 1, 1), SSlogis(x, 1, 1, 1), SSmicmen(x, 1, 1), SSweibull(x, 1, 1, 1, 1)
  ))
)
names(calls) <- vapply(calls, function(call) as.character(call[[1]]), "")
stopifnot(setequal(names(calls), names(home)), !anyDuplicated(names(calls)))

setClass("S", representation(cells = "numeric"))
vectors <- function(n) {
  set.seed(1)
  m <- sqrt(n)
  M <- N <- matrix(runif(n), m)
  Q <- crossprod(M) + base::diag(m)
  g <- factor(rep(1:2, length.out = n))
  x <- rnorm(n)
  list(
    n = n, x = x, y = rnorm(n), u = runif(n), v = runif(n), t = as.numeric(seq_len(n)), k = rep(1:4, length.out = n),
    r = runif(m), M = M, N = N, Q = Q, U = chol(Q), D = qr(Q), g = g, G = split(x, g), L = as.list(x),
    s = rep(c("abc", "bcd"), length.out = n), S = new("S", cells = x), f = function(a, b) a + b - 1,
    square = function(a) sum((x - a)^2), level = function(a) sum(x - a), bell = function(a) exp(-a^2), nul = nullfile()
  )
}

# Returns a byte-compiled loop of calls.
loop_of <- function(f, call, here) {
  here <- list2env(here, parent = globalenv())
  here$.f <- f
  call[[1]] <- quote(.f)
  compiler::cmpfun(eval(bquote(function(times) for (i in seq_len(times)) .(call)), here))
}
ratio <- function(name, n, turns = 5, least = 0.008) {
  call <- calls[[name]]
  mine <- loop_of(get(name, "package:gradops"), call, vectors(n))
  theirs <- loop_of(get(name, asNamespace(home[[name]])), call, vectors(n))
  seconds <- function(run, times) sum(system.time(run(times), FALSE)[1:2]) # processor time: the machine may be busy
  times <- 1
  for (run in c(mine, theirs, mine, theirs)) run(3)
  while (seconds(theirs, times) < least) times <- 2 * times
  taken <- base::replicate(turns, c(seconds(theirs, times), seconds(mine, times)))
  c(stats::median(taken[1, ]) / times * 1e6, stats::median(taken[2, ] / taken[1, ]))
}

chosen <- commandArgs(TRUE)
if (length(chosen) == 0) chosen <- names(home)
found <- t(vapply(chosen, function(name) {
  message(name) # to know which one does not end
  suppressWarnings(c(ratio(name, 100), ratio(name, 4)))
}, numeric(4)))
colnames(found) <- c("us of 100", "ratio", "us of 4", "ratio of 4")
print(round(found[order(-found[, 2]), , drop = FALSE], 2))
cat(sprintf(
  "\nratios of 100: median %.2f, above 1.5: %d of %d\n", stats::median(found[, 2]), sum(found[, 2] > 1.5), nrow(found)
))
