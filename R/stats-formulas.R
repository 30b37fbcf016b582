#' Model functions of tensors
#'
#' `deriv()` and `deriv3()` of stats, for functions that also take tensors: the value then has the attributes `gradient`
#' (and `hessian`) as tensors, and can itself be differentiated. The self-starting models of [stats::nls()], `SSlogis()`
#' and the others, take tensors as well, without the attribute. For ordinary R vectors the stats function is called.
#' @param expr,input,Asym,xmid,scal,R0,lrc,c0,A1,A2,lrc1,lrc2,Dose,lKe,lKa,lCl,A,B,b2,b3,Vm,K,x,Drop,pwr As in stats:
#'   parameters and inputs may be tensors.
#' @param ... As in stats.
#' @returns The result of the function in stats; for tensors, a tensor.
#' @section Gradient:
#' To all orders.
#' @seealso [gradient()], [objective()].
#' @examplesIf gradops_available()
#' decay <- deriv(~ a * exp(-b * t), c("a", "b"), function(a, b, t) NULL)
#' gradient(function(p) sum(decay(p[1], p[2], 1:3)), c(2, 0.5))
#' gradient(function(p) sum(SSlogis(1:3, p[1], p[2], p[3])), c(2, 1, 0.5))
#' @eval usages(models_of_r())
#' @name tensor_models
NULL

#' @rdname tensor_models
#' @export
deriv <- function(expr, ...) {
  tensor_deriv(called_from(parent.frame(), "deriv", "stats")(expr, ...))
}

#' @rdname tensor_models
#' @export
deriv3 <- function(expr, ...) {
  tensor_deriv(called_from(parent.frame(), "deriv3", "stats")(expr, ...))
}

# Change the result of `deriv()`, a function or an expression that fills R arrays, which cannot hold tensors.
tensor_deriv <- function(made) {
  if (is.function(made)) {
    body(made) <- with_columns(body(made))
  } else if (is.expression(made)) {
    made[[1]] <- with_columns(made[[1]])
  }
  made
}

# Replace `.grad <- array(0, ...)` by columns that may be tensors, and bind them in `attr(.value, "gradient") <- .grad`.
with_columns <- function(code) {
  for (i in seq_along(code)) {
    step <- code[[i]]
    if (is_call_of(step, "<-") && rlang::is_call(step[[3]], "array")) {
      step[[3]][[1]] <- columns_here
      code[[i]][[3]] <- as.call(c(as.list(step[[3]]), quote(environment())))
    } else if (is_call_of(step, "<-") && rlang::is_call(step[[2]], "attr")) {
      code[[i]][[3]] <- call("(", as.call(list(filled_columns, step[[3]])))
    }
  }
  code
}

# R's array, or a list of columns to fill if a variable of the frame is a tensor.
columns_here <- function(data, dim, dimnames, frame) {
  tensors <- any(vapply(mget(ls(frame, all.names = TRUE), frame, ifnotfound = list(NULL)), is_tensor, NA))
  if (!tensors) {
    return(base::array(data, dim, dimnames))
  }
  structure(list(columns = rep(list(0), prod(dim[-1])), dim = dim, names = dimnames[[2]]), class = "gradops_columns")
}

#' @noRd
#' @export
`[<-.gradops_columns` <- function(x, ..., value) {
  named <- vapply(as.list(substitute(list(...)))[-(1:2)], eval, "", parent.frame())
  places <- match(named, x$names)
  k <- length(x$names)
  self <- unclass(x)
  self$columns[[if (length(places) == 1L) places else places[1] + k * (places[2] - 1L)]] <- value
  structure(self, class = "gradops_columns")
}

filled_columns <- function(x) {
  if (!inherits(x, "gradops_columns")) {
    return(x)
  }
  x <- unclass(x)
  fill(joined(lapply(x$columns, recycled, x$dim[1])), x$dim)
}

# Self-starting models -------------------------------------------------------------------------------------------------

# The model of stats. If an argument is a tensor, parentheses around the arguments turn off its `gradient`, which it
# computes only if all arguments are names.
model_of_tensors <- function(name) {
  model <- getExportedValue("stats", name)
  arguments <- lapply(names(formals(model)), as.name)
  values <- lapply(arguments, function(argument) call("(", argument))
  has_class <- Reduce(function(x, y) call("||", x, y), lapply(arguments, function(x) call("is.object", x)))
  body(model) <- bquote(if ((.(has_class)) && .(as.call(c(quote(any_tensor), arguments)))) {
    .(as.call(c(call("::", quote(stats), as.name(name)), values)))
  } else {
    .(body(model))
  })
  environment(model) <- topenv()
  attributes(model) <- attributes(getExportedValue("stats", name))
  model
}

models_of_r <- function() {
  base::c(
    "SSasymp", "SSasympOff", "SSasympOrig", "SSbiexp", "SSfol", "SSfpl", "SSgompertz", "SSlogis", "SSmicmen",
    "SSweibull"
  )
}

for (name in models_of_r()) assign(name, model_of_tensors(name))
rm(name)
