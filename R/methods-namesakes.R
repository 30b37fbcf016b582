# Generics for functions of base R and stats that are not generic in R, with R's formals: by page of the manual, the
# function's name and the arguments that may be tensors. They are made while gradops' own `c()` and `outer()` do not
# have methods yet.

distribution_families <- function() {
  base::c(
    "norm", "lnorm", "exp", "gamma", "beta", "t", "unif", "logis", "weibull", "cauchy", "chisq", "f", "binom", "pois",
    "geom", "hyper"
  )
}

generics_of_r <- function() {
  families <- base::c(distribution_families(), "nbinom")
  by_family <- function(kinds) all_parameters(as.vector(base::outer(kinds, families, base::paste0)))
  list(
    tensor_distances = list(norm = "x", dist = "x", mahalanobis = "x center cov"),
    tensor_distributions = base::c(by_family(base::c("d", "p", "q")), dmultinom = "x prob"),
    tensor_interpolation = list(approx = "x y xout", spline = "x y xout"),
    tensor_least_squares = list(
      qr.coef = "qr y", qr.fitted = "qr y", qr.resid = "qr y", qr.solve = "a b", lm.fit = "x y offset",
      lm.wfit = "x y w offset"
    ),
    tensor_matrices = list(
      outer = "X Y", kronecker = "X Y", solve = "a b", chol2inv = "x", backsolve = "r x", forwardsolve = "l x",
      qr.Q = "qr", eigen = "x", diag = "x nrow ncol", `diag<-` = "x value"
    ),
    tensor_random = base::c(
      by_family("r"), ptukey = "q nmeans df", qtukey = "p nmeans df", psignrank = "q n", pwilcox = "q m n"
    ),
    tensor_signals = list(fft = "z", mvfft = "z", convolve = "x y", embed = "x"),
    tensor_special = list(
      beta = "a b", lbeta = "a b", choose = "n k", lchoose = "n k", atan2 = "y x", psigamma = "x deriv",
      complex = "real imaginary modulus argument", besselI = "x nu", besselK = "x nu", besselJ = "x nu",
      besselY = "x nu"
    ),
    tensor_statistics = list(
      weighted.mean = "x w", var = "x y", cov = "x y", cor = "x y", cov2cor = "V", sd = "x", rowSums = "x",
      colSums = "x", rowMeans = "x", colMeans = "x", pmax = "...", pmin = "...", scale = "x center scale"
    )
  )
}

# The tensor arguments of distribution functions: without settings and without the number of random numbers.
all_parameters <- function(names) {
  parameters <- lapply(names, function(name) {
    f <- getExportedValue("stats", name)
    at <- if (base::substr(name, 1L, 1L) != "r") names(formals(f))[1L]
    base::paste(base::c(at, family_parameters(f), intersect("ncp", names(formals(f)))), collapse = " ")
  })
  stats::setNames(parameters, names)
}

# The names of the parameters of a family in the core.
family_parameters <- function(f) {
  arguments <- names(formals(f))[-1L]
  setdiff(arguments, base::c("log", "lower.tail", "log.p", "ncp", if ("scale" %in% arguments) "rate"))
}

generic_of_r <- function(name, arguments) {
  given <- as.list(formals(get(name, asNamespace(package_of_r(name)))))
  looked_at <- lapply(base::strsplit(arguments, " ")[[1L]], function(argument) {
    lacks_default <- argument != "..." && rlang::is_missing(given[[argument]])
    argument <- as.name(argument)
    if (lacks_default) bquote(if (!missing(.(argument))) .(argument)) else argument
  })
  among <- as.call(base::c(as.name(if (startsWith(name, "qr.")) "class_among_factors" else "among"), looked_at))
  as.function(base::c(given, bquote(UseMethod(.(name), .(among)))), topenv())
}

for (page in generics_of_r()) list2env(Map(generic_of_r, names(page), page), topenv())
rm(page)

# For roxygen2: usage of a page's functions. Functions whose name starts with `qr.` are left out, as R CMD check takes
# them for methods of `qr()`.
usages <- function(names) {
  shown <- names[!startsWith(names, "qr.")]
  words <- paste(names, collapse = " ")
  c(paste("@aliases", words), paste("@export", words), "@usage", paste0(vapply(shown, usage, ""), "\n"))
}

generics_of_page <- function(page) {
  names(generics_of_r()[[page]])
}

usage <- function(name) {
  parts <- mapply(
    function(argument, default) if (identical(default, "")) argument else paste(argument, "=", default),
    names(formals(name)), vapply(formals(name), deparse1, "")
  )
  if (endsWith(name, "<-")) {
    return(sprintf("%s(x) <- value", sub("<-", "", name)))
  }
  line <- sprintf("%s(%s)", name, toString(parts))
  if (nchar(line) <= 80) line else sprintf("%s(\n  %s\n)", name, paste(parts, collapse = ",\n  "))
}
