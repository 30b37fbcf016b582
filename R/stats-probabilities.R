# Distribution functions of tensors: see stats-distributions.R.

#' @rdname tensor_distributions
#' @export
pnorm <- function(q, mean = 0, sd = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pnorm", among(q, mean, sd))
}

#' @rdname tensor_distributions
#' @export
plnorm <- function(q, meanlog = 0, sdlog = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("plnorm", among(q, meanlog, sdlog))
}

#' @rdname tensor_distributions
#' @export
pexp <- function(q, rate = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pexp", among(q, rate))
}

#' @rdname tensor_distributions
#' @export
pgamma <- function(q, shape, rate = 1, scale = 1 / rate, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pgamma", among(q, shape, scale))
}

#' @rdname tensor_distributions
#' @export
pbeta <- function(q, shape1, shape2, ncp = 0, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pbeta", among(q, shape1, shape2, ncp))
}

#' @rdname tensor_distributions
#' @export
pt <- function(q, df, ncp, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pt", if (missing(ncp)) among(q, df) else among(q, df, ncp))
}

#' @rdname tensor_distributions
#' @export
punif <- function(q, min = 0, max = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("punif", among(q, min, max))
}

#' @rdname tensor_distributions
#' @export
plogis <- function(q, location = 0, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("plogis", among(q, location, scale))
}

#' @rdname tensor_distributions
#' @export
pweibull <- function(q, shape, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pweibull", among(q, shape, scale))
}

#' @rdname tensor_distributions
#' @export
pcauchy <- function(q, location = 0, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pcauchy", among(q, location, scale))
}

#' @rdname tensor_distributions
#' @export
pchisq <- function(q, df, ncp = 0, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pchisq", among(q, df, ncp))
}

#' @rdname tensor_distributions
#' @export
pf <- function(q, df1, df2, ncp, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pf", if (missing(ncp)) among(q, df1, df2) else among(q, df1, df2, ncp))
}

#' @rdname tensor_distributions
#' @export
pbinom <- function(q, size, prob, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pbinom", among(q, size, prob))
}

#' @rdname tensor_distributions
#' @export
ppois <- function(q, lambda, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("ppois", among(q, lambda))
}

#' @rdname tensor_distributions
#' @export
pnbinom <- function(q, size, prob, mu, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pnbinom", if (missing(mu)) among(q, size, prob) else among(q, size, mu))
}

#' @rdname tensor_distributions
#' @export
pgeom <- function(q, prob, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pgeom", among(q, prob))
}

#' @rdname tensor_distributions
#' @export
phyper <- function(q, m, n, k, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("phyper", among(q, m, n, k))
}
