#' Functions of R that gradops masks
#'
#' After `library(gradops)` the functions of base R and stats below are gradops' namesakes, which also take tensors and
#' variables. If no argument has a class, R's own code runs with the arguments unchanged: its results, warnings and
#' errors are R's. The package prefix calls R's function directly: `base::diag()`, `stats::sd()`. Each link leads to the
#' function's page for tensors.
#'
#' R's own list of what a package masks is long, so gradops prints one line instead, and a line for each other package
#' or attached object whose functions it masks, or that masks gradops' functions.
#' `suppressPackageStartupMessages(library(gradops))` silences them. `conflicts(detail = TRUE)` lists all names as
#' usual, and R reports packages that are attached later and mask gradops' functions. If the option `conflicts.policy`
#' asks for R's list, R prints it; if it forbids masking, `library(gradops, mask.ok = TRUE)` allows it.
#' `library(gradops, exclude = "filter")` does not mask that function; code inside [gradient()] and similar functions
#' finds the namesakes either way.
#'
#' Generics of R that dispatch on the first argument, such as `mean()`, `print()`, `t()`, `rep()`, are not masked:
#' tensors have methods.
#'
#' @eval masked_sections(parseNamespaceFile(".", "."))
#' @seealso [tensor_statistics], [tensor_matrices], [tensor_distributions], [tensor_mapping].
#' @examplesIf gradops_available()
#' identical(sd(c(1, 2, 4)), stats::sd(c(1, 2, 4)))
#' sd(variable(c(1, 2, 4)))
#' gradient(sd, c(1, 2, 4))
#' @name gradops-masked
NULL

# The reasons for namesakes of functions that are generics in R or need more than a method.
masking <- function() {
  list(
    list(
      title = "Generics that dispatch on one argument",
      reason = paste(
        "R dispatches on the first argument. Here another one may be the tensor: `solve(m, tensor)`,",
        "`c(1, tensor)`, `weighted.mean(1:3, tensor)`."
      ),
      names = c("c", "scale", "solve", "weighted.mean")
    ),
    list(
      title = "Operators",
      reason = paste(
        "`%*%` and `@` have methods since R 4.3 only; R's `%o%` and `%x%` call R's `outer()` and `kronecker()`,",
        "whatever is attached."
      ),
      names = c("%*%", "%o%", "%x%", "@")
    ),
    list(
      title = "Functions that combine results",
      reason = paste(
        "R combines numbers into a vector, and other objects into a list. Here tensors that a function returns, or",
        "that a list holds, become one tensor."
      ),
      names = c("Vectorize", "apply", "by", "mapply", "sapply", "tapply", "unlist", "unsplit", "vapply")
    ),
    list(
      title = "Solvers",
      reason = paste(
        "R's compiled code needs a function that returns a number. Here it may return a tensor, and the solution has",
        "derivatives with respect to the tensors that the problem depends on."
      ),
      names = c("integrate", "nlm", "nlminb", "optim", "optimise", "optimize", "uniroot")
    ),
    list(
      title = "Functions that are, or return, functions of numbers",
      reason = "The returned function, or the model, takes tensors as well.",
      names = c(
        "approxfun", "deriv", "deriv3", "splinefun", "SSasymp", "SSasympOff", "SSasympOrig", "SSbiexp", "SSfol",
        "SSfpl", "SSgompertz", "SSlogis", "SSmicmen", "SSweibull"
      )
    )
  )
}

# The names of functions that gradops exports and base R or stats has as well, by package. `%||%` is in R since 4.4 and
# means the same, so it does not count.
masked_functions <- function(exports) {
  lapply(stats::setNames(nm = c("base", "stats")), function(package) {
    sort(setdiff(intersect(exports, getNamespaceExports(package)), "%||%"), method = "radix")
  })
}

# The sections of the page, for roxygen2.
masked_sections <- function(namespace) {
  masked <- masked_functions(namespace$exports)
  home <- rep(names(masked), lengths(masked))
  names(home) <- unlist(masked)
  groups <- masking()
  kept <- unlist(lapply(groups, `[[`, "names"))
  stopifnot(kept %in% names(home), !duplicated(kept))
  others <- list(
    title = "Functions that are not generics",
    reason = paste(
      "R dispatches on no argument. If any argument is a tensor, gradops' ops compute the result, with R's arguments",
      "and meaning."
    ),
    names = setdiff(names(home), kept)
  )
  unlist(lapply(c(list(others), groups), function(group) {
    names <- sort(group$names, method = "radix")
    written <- gsub("%", "\\%", names, fixed = TRUE)
    operator <- !grepl("^[[:alpha:]]", names)
    c(
      sprintf("@section %s:", group$title), group$reason, "",
      "\\tabular{ll}{", "\\strong{gradops} \\tab \\strong{R} \\cr",
      sprintf(
        "\\code{\\link[=%s]{%s}} \\tab \\code{%s::%s} \\cr", written, written, home[names],
        ifelse(operator | grepl("<-", names), sprintf("`%s`", written), written)
      ),
      "}"
    )
  }))
}

# Attaching ------------------------------------------------------------------------------------------------------------

# `.conflicts.OK` turns off R's list of masked functions. Conflicts with other packages are reported here, in both
# directions.
.onAttach <- function(libname, pkgname) {
  here <- as.environment(paste0("package:", pkgname))
  attach_quick(here)
  assign(".conflicts.OK", TRUE, envir = here)
  warn <- getOption("conflicts.policy")
  if (is.list(warn) && isFALSE(warn$warn)) {
    return(invisible())
  }
  packageStartupMessage(sprintf(
    "gradops %s: %d functions of base R and stats also take tensors, see ?\"gradops-masked\"",
    getNamespaceVersion(pkgname), sum(lengths(masked_functions(names(here))))
  ))
  quiet <- c("Autoloads", "CheckExEnv", paste0("package:", c(pkgname, names(namesakes()), "methods", "utils")))
  for (other in setdiff(search(), quiet)) {
    same <- intersect(names(here), ls(other, all.names = TRUE))
    masked <- Filter(function(name) masks(name, here, as.environment(other)), sort(same))
    if (length(masked) > 0) {
      before <- match(other, search()) > match(paste0("package:", pkgname), search())
      packageStartupMessage(sprintf(
        "gradops: %s %s the namesake%s in %s%s.", shortened(paste0("`", masked, "()`")),
        if (before) "masks" else "is masked by", if (length(masked) > 1) "s" else "", sQuote(other, FALSE),
        if (other == "package:keras3") ": see `vignette(\"with-keras3\")`" else ""
      ))
    }
  }
}

# Names in one line, shortened if there are many.
shortened <- function(names) {
  if (length(names) <= 5) toString(names) else sprintf("%s and %d more", toString(names[1:2]), length(names) - 2L)
}

masks <- function(name, here, other) {
  mine <- get(name, envir = here)
  theirs <- get(name, envir = other)
  is.function(mine) && is.function(theirs) && !identical(mine, theirs) && !startsWith(name, ".") &&
    !(name %in% unlist(lapply(namesakes(), names)) && methods::is(theirs, "standardGeneric"))
}
