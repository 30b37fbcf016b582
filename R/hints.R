# What base R says where it meets a tensor and does not dispatch helps nobody: what to write instead, by its message.
# A message that R has for other mistakes too gets its hint with an "if".

growing <- paste(
  "Start from a tensor, as `h <- 0 * p[1] + numeric(n)` or `h <- op_zeros(n)`;",
  "or collect in a list, and join by `do.call(c, h)`."
)

hints <- list(
  list(
    pattern = "from environment to .* in subassignment|environment/0|environments cannot be coerced",
    says = "`%s`: R has no place for a tensor in a vector of its own.", instead = growing
  ),
  list(
    pattern = "^number of items to replace|^long vectors not supported yet: subassign",
    says = "`%s`: if the value is a tensor, R has no place for it in a vector of its own.", instead = growing
  ),
  list(
    pattern = "type 'environment'\\) cannot be handled by 'cat'",
    says = "`%s`: `cat()` does not know tensors.", instead = "Use `print(p)`, or `cat(format(p))`."
  ),
  list(
    pattern = "^[Nn]on-numeric argument to mathematical function",
    says = "`%s`: if an argument is a tensor, this function does not know it.",
    instead = "See `?r_function`, or write it with the functions of `?tensor_distributions` and the `op_*()`."
  ),
  list(
    pattern = paste(
      sep = "|", "^non-numeric argument to binary operator", "^comparison .* is possible only for atomic",
      "^operations are possible only for numeric"
    ),
    says = "`%s`: if one side is a tensor, the other has operators of its own, as a time series or keras3's tensors have.",
    instead = "Take its values by `as.numeric()` before; of a tensor make gradops' own by `op_convert_to_tensor()`."
  )
)

# Nothing, or an error with what R said as its parent.
explain_hint <- function(condition, class) {
  call <- conditionCall(condition)
  if (!inherits(condition, "simpleError") || !is.call(call)) {
    return(invisible())
  }
  for (hint in hints) {
    if (grepl(hint$pattern, conditionMessage(condition))) {
      abort(
        c(sprintf(hint$says, deparse(call, nlines = 1)[1]), i = hint$instead),
        class = c(class, "gradops_error"), parent = condition, call = NULL
      )
    }
  }
}
