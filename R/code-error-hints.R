# Base R's messages about tensors it does not dispatch on help nobody. For each message this file has the code to write
# instead. A message that R also has for other mistakes gets a hint with an "if".

growing <- paste(
  "Functions may assign tensors like this while gradops differentiates them; it did not find this function",
  "by name. Start from a tensor: `h <- 0 * p[1] + numeric(n)` or `h <- op_zeros(n)`; or collect a list and join it",
  "with `do.call(c, h)`."
)
numbers_alone <- paste(
  "`?r_function` gives such a function a gradient; `?tensor_distributions`, `?root` and the `op_*()` take tensors;",
  "`as.numeric(op_stop_gradient(x))` takes the values, without a gradient."
)

# `assigns`: TRUE if the hint is for `h[i] <- v` only, FALSE if it is for everything else. `operands`: TRUE if a wrong
# operand of the call explains the error better.
hints <- list(
  list(
    pattern = "incompatible types .*environment.* in subassignment|environment/0|environments cannot be coerced",
    assigns = TRUE,
    says = "`%s`: an R vector cannot hold a tensor.", instead = growing
  ),
  list(
    pattern = "^number of items to replace|^long vectors not supported yet: subassign|^more elements supplied",
    assigns = TRUE, says = "`%s`: if the value is a tensor, an R vector cannot hold it.",
    instead = growing
  ),
  list(
    pattern = "type 'environment'\\) cannot be handled by 'cat'",
    says = "`%s`: `cat()` does not take tensors.", instead = "Use `print(p)`, or `cat(format(p))`."
  ),
  list(
    pattern = "cannot be coerced to (type|vector of type) '?(double|integer|logical|any)|^environments cannot be",
    assigns = FALSE, says = "`%s`: this R function takes ordinary R vectors only; it was given a tensor.",
    instead = numbers_alone
  ),
  list(
    pattern = paste0(
      "^could not find function \"(getAll|ADREPORT|REPORT|OBS|ADoverload|AD|advector|dmvnorm|dgmrf|dautoreg|%~%|",
      "unstructured|dseparable|DataEval|MakeADFun|sdreport|MakeTape)\""
    ),
    says = "`%s`: this is a function of RTMB, which is not attached.",
    instead = paste(
      "`attach_rtmb()` has them, `library(RTMB)` too: see \"Coming from RTMB and TMB\" in `vignette(\"r-code\")`."
    )
  ),
  list(
    pattern = "^could not find function \"op_",
    says = "`%s`: gradops has no op of that name.",
    instead = function(message) {
      name <- sub("^could not find function \"(.*)\".*", "\\1", message)
      like <- closest(name, grep("^op_", getNamespaceExports("gradops"), value = TRUE))
      if (length(like) > 0) sprintf("Did you mean `%s()`?", like[1])
    }
  ),
  list(
    pattern = "^could not find function", says = "`%s`: there is no function of that name.",
    instead = function(message) {
      name <- sub("^could not find function \"(.*)\".*", "op_\\1", message)
      if (name %in% getNamespaceExports("gradops")) sprintf("gradops' op is `%s()`.", name)
    }
  ),
  list(
    pattern = "^[Nn]on-numeric argument to mathematical function", assigns = FALSE, operands = TRUE,
    says = "`%s`: an argument is not a number; if it is a tensor, this function does not take tensors.",
    instead = paste("A misspelt name gives NULL, as `p$sgima` of a list with `sigma`.", numbers_alone)
  ),
  list(
    pattern = "has unsupported class \"gradops_|^\"kind\" not yet defined for objects of type \"environment\"",
    says = "`%s`: a matrix of the package Matrix holds ordinary R numbers only.",
    instead = "Use `diag(p)` or `matrix()`; a product with a constant sparse matrix keeps its gradient: `M %*% p`."
  ),
  list(
    pattern = "^at least one vector element is required",
    says = "`%s`: if an element is a tensor, R does not treat it as a vector.",
    instead = "Join them with `do.call(c, parts)`."
  ),
  list(
    pattern = "^invalid subscript type 'environment'",
    says = "`%s`: an ordinary R vector is indexed by a tensor.",
    instead = "Use `as.integer()` of the index where its values are known; or make the vector a tensor."
  ),
  list(
    pattern = "^invalid '[xy]' type in|^argument is not interpretable as logical|^invalid for\\(\\) loop sequence",
    says = "`%s`: if this is a tensor, it is a condition in code that gradops has not adapted.",
    instead = "Write `as.logical(x)`, or `as.list(x)` in `for`, where values are known."
  ),
  list(
    pattern = "^length of 'dimnames' \\[2\\] not equal to array|^dims \\[product .*\\] do not match the length",
    says = "`%s`: R makes no matrix from a data frame whose columns are tensors.",
    instead = "Write `as.matrix(d)` before, or `sapply(d, f)` for its columns."
  ),
  list(
    pattern = "^arguments imply differing number of rows",
    says = "`%s`: if a column is a tensor of one element, R does not recycle it.", instead = "Write `rep(p[1], n)`."
  ),
  list(
    pattern = "assignment of an object of class .* is not valid for (@|slot)|invalid object for slot .* class",
    says = "`%s`: a slot for numbers cannot hold a tensor.",
    instead = "Declare the slot as \"ANY\", or keep the tensor outside the object."
  ),
  list(
    pattern = "^object is not a matrix$|^invalid type \\(environment\\) for variable",
    says = "`%s`: a variable of the formula may be a tensor; model frames hold ordinary R vectors only.",
    instead = paste(
      "Use `lm.fit(X, y)` or `X %*% b` with `X <- model.matrix(...)` of ordinary data; `tapply(x, g, FUN)` for groups."
    )
  ),
  list(
    pattern = paste(
      sep = "|", "^non-numeric argument to binary operator", "^comparison .* is possible only for atomic",
      "^operations are possible only for numeric"
    ),
    operands = TRUE,
    says = paste(
      "`%s`: if one side is a tensor, the other has its own operators, as data frames, time series and keras3's",
      "tensors have."
    ),
    instead = paste(
      "Write `as.matrix(d)` or the columns of a data frame; take the values of a series by `as.numeric()`; convert",
      "another tensor by `op_convert_to_tensor()`."
    )
  )
)

# Hints for errors whose call is not one of base R's functions.
hints_of_own_code <- list(
  list(
    pattern = "^invalid 'type' \\((environment|list)\\) of argument", operands = TRUE,
    says = "`%s`: R looks at the first argument only, which is not a tensor.",
    instead = "Put the tensor first, as `max(p[1], 0)`; join a list with `do.call(c, parts)`."
  )
)

# Return nothing, or raise an error with R's error as its parent.
explain_hint <- function(condition, class, hints) {
  call <- conditionCall(condition)
  if (!inherits(condition, "simpleError")) {
    return(invisible())
  }
  if (!is.call(call)) call <- quote(f(...)) # of a package that names none
  for (hint in hints) {
    assigns <- rlang::is_call(call, c("<-", "<<-", "=", "[<-", "[[<-")) && !rlang::is_call(call[[2]], "storage.mode")
    fits <- is.null(hint$assigns) || hint$assigns == assigns
    if (fits && grepl(hint$pattern, conditionMessage(condition))) {
      instead <- if (is.function(hint$instead)) hint$instead(conditionMessage(condition)) else hint$instead
      if (is.null(instead)) next
      if (isTRUE(hint$operands)) call <- written_call(call)
      says <- sprintf(hint$says, deparse(call, nlines = 1)[1])
      slip <- if (isTRUE(hint$operands)) wrong_operand(call)
      if (!is.null(slip)) {
        says <- sprintf("`%s`: %s", deparse(call, nlines = 1)[1], slip$is)
        instead <- slip$instead
      }
      abort(
        c(says, i = instead),
        class = c(class, "gradops_error"), parent = condition, call = NULL
      )
    }
  }
}

# The position of the last frame, up to `last`, whose function's code has a call; NA if none has it.
home_of <- function(call, last = sys.nframe()) {
  call <- unsourced(call)
  has_call <- function(code) {
    identical(code, call) || is.call(code) && any(vapply(as.list(code), function(x) !missing(x) && has_call(x), NA))
  }
  Position(function(i) has_call(body(sys.function(i))), seq_len(last), right = TRUE)
}

# A call as the user wrote it, for the call in a function that passes `...` on.
written_call <- function(call, last = sys.nframe()) {
  passes_on <- any(vapply(as.list(call)[-1L], identical, NA, quote(...)))
  home <- if (passes_on) home_of(call, last) else NA
  if (is.na(home)) call else written_call(sys.call(home), home - 1L)
}

# The first operand of a failed call that is neither a tensor nor numbers: a description, `is`, and the code to write
# `instead`. NULL if all operands fit. It only looks up variables and their elements, as code must not run twice.
wrong_operand <- function(call, may_be = function(value) TRUE) {
  home <- home_of(call)
  env <- if (!is.na(home)) sys.frame(home)
  for (operand in as.list(call)[-1L]) {
    value <- looked_up(operand, env)
    instead <- if (length(value) > 0L && may_be(value[[1L]])) operand_hint(operand, value[[1L]], env)
    if (!is.null(instead)) {
      what <- if (is.function(value[[1L]])) "a function" else friendly(value[[1L]])
      return(list(is = sprintf("`%s` is %s.", deparse(operand, nlines = 1)[1], what), instead = instead))
    }
  }
}

# The hint for an error of a call that was given NULL.
null_hint <- function(call) {
  if (is.environment(call)) {
    frame <- Position(function(frame) identical(frame, call), sys.frames())
    call <- if (!is.na(frame)) sys.call(frame)
  }
  slip <- if (is.call(call)) wrong_operand(call, is.null)
  if (!is.null(slip)) paste(slip$is, slip$instead)
}

# A list of the value of a variable or of an element of a list; empty for other code.
looked_up <- function(code, env) {
  first <- all.vars(code)[1L]
  calls <- setdiff(all.names(code), all.vars(code))
  if (is.null(env) || first %in% c(NA, "") || !exists(first, env) || !all(calls %in% c("$", "[[", "["))) {
    return(list())
  }
  whole <- get(first, env)
  if (is.call(code) && (is.object(whole) || !is.list(whole))) {
    return(list())
  }
  tryCatch(list(suppressWarnings(eval(code, env))), error = function(error) list())
}

# A hint for an operand that is NULL, a list, a function or text; NULL for other values.
operand_hint <- function(operand, value, env) {
  is_part <- is.call(operand)
  whole <- if (is_part) deparse1(operand[[2L]])
  if (is.null(value)) {
    names <- if (is_part) names(unlist(looked_up(operand[[2L]], env), recursive = FALSE))
    of <- if (length(names) > 0L) sprintf("; `%s` has %s", whole, toString(names))
    sprintf("A misspelt name gives NULL%s.", of %||% ", as `p$sgima` of a list with `sigma`")
  } else if (is.data.frame(value)) {
    "Write `as.matrix(d)`, or the columns of the data frame."
  } else if (is.list(value) && !is.object(value)) {
    if (is_part && rlang::is_call(operand, "[")) {
      sprintf("Write `%s[[%s]]` for the element.", whole, deparse1(operand[[3L]]))
    } else {
      first <- if (nzchar(rlang::names2(value)[1L])) paste0("$", names(value)[1L]) else "[[1]]"
      sprintf("Write its elements, as `%1$s%2$s`, or join them: `do.call(c, %1$s)`.", deparse1(operand), first)
    }
  } else if (is.function(value)) {
    "No variable has this name where the code runs."
  } else if (is.character(value)) {
    "Give numbers or a tensor."
  }
}

# Explain any error of one of R's own functions that was given a tensor. The frames still exist, so their arguments
# tell. The error names the outermost of R's functions, which is the call that the user wrote. A function that fails
# without a frame, such as `max()`, was called in the last frame before R's handler.
explain_own <- function(condition, class) {
  call <- conditionCall(condition)
  if (!inherits(condition, "simpleError") || !is.call(call)) {
    return(invisible())
  }
  last <- function(is) Position(is, seq_len(sys.nframe()), right = TRUE)
  frame <- last(function(i) identical(unsourced(sys.call(i)), unsourced(call)))
  if (is.na(frame)) frame <- last(function(i) identical(sys.function(i), .handleSimpleError)) - 1L
  given <- FALSE
  while (!is.na(frame) && frame > 0 && is_of_r_itself(sys.function(frame))) {
    given <- given || has_tensor_argument(sys.frame(frame), sys.function(frame))
    written <- sys.call(frame)
    frame <- sys.parents()[frame]
  }
  if (given) {
    abort(
      c(
        sprintf("`%s`: this R function failed on a tensor; it may not take tensors.", deparse(written, nlines = 1)[1]),
        i = numbers_alone
      ),
      class = c(class, "gradops_error"), parent = condition, call = NULL
    )
  }
}

unsourced <- function(call) {
  attr(call, "srcref") <- NULL
  call
}

is_of_r_itself <- function(f) {
  is.function(f) && environmentName(topenv(environment(f) %||% baseenv())) %in% c("base", "stats", "utils")
}

# TRUE if one of the arguments that have been evaluated is a tensor.
has_tensor_argument <- function(frame, f) {
  names <- intersect(names(formals(f)), ls(frame, all.names = TRUE))
  names <- names[!rlang::env_binding_are_lazy(frame, names)]
    is_held <- function(name) !rlang::is_missing(frame[[name]]) && is_any_tensor(frame[[name]])
  any(vapply(setdiff(names, "..."), is_held, NA))
}
