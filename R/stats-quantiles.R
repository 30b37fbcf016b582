# Quantiles of tensors: see stats-distributions.R.

#' @rdname tensor_distributions
#' @export
qnorm <- function(p, mean = 0, sd = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qnorm", among(p, mean, sd))
}

#' @rdname tensor_distributions
#' @export
qlnorm <- function(p, meanlog = 0, sdlog = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qlnorm", among(p, meanlog, sdlog))
}

#' @rdname tensor_distributions
#' @export
qexp <- function(p, rate = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qexp", among(p, rate))
}

#' @rdname tensor_distributions
#' @export
qgamma <- function(p, shape, rate = 1, scale = 1 / rate, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qgamma", among(p, shape, scale))
}

#' @rdname tensor_distributions
#' @export
qbeta <- function(p, shape1, shape2, ncp = 0, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qbeta", among(p, shape1, shape2, ncp))
}

#' @rdname tensor_distributions
#' @export
qt <- function(p, df, ncp, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qt", if (missing(ncp)) among(p, df) else among(p, df, ncp))
}

#' @rdname tensor_distributions
#' @export
qunif <- function(p, min = 0, max = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qunif", among(p, min, max))
}

#' @rdname tensor_distributions
#' @export
qlogis <- function(p, location = 0, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qlogis", among(p, location, scale))
}

#' @rdname tensor_distributions
#' @export
qweibull <- function(p, shape, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qweibull", among(p, shape, scale))
}

#' @rdname tensor_distributions
#' @export
qcauchy <- function(p, location = 0, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qcauchy", among(p, location, scale))
}

#' @rdname tensor_distributions
#' @export
qchisq <- function(p, df, ncp = 0, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qchisq", among(p, df, ncp))
}

#' @rdname tensor_distributions
#' @export
qf <- function(p, df1, df2, ncp, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qf", if (missing(ncp)) among(p, df1, df2) else among(p, df1, df2, ncp))
}

#' @rdname tensor_distributions
#' @export
qbinom <- function(p, size, prob, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qbinom", among(p, size, prob))
}

#' @rdname tensor_distributions
#' @export
qpois <- function(p, lambda, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qpois", among(p, lambda))
}

#' @rdname tensor_distributions
#' @export
qnbinom <- function(p, size, prob, mu, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qnbinom", if (missing(mu)) among(p, size, prob) else among(p, size, mu))
}

#' @rdname tensor_distributions
#' @export
qgeom <- function(p, prob, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qgeom", among(p, prob))
}

#' @rdname tensor_distributions
#' @export
qhyper <- function(p, m, n, k, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qhyper", among(p, m, n, k))
}
