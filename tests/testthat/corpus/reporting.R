# Code as people write it: reports during a computation.

at("cat", c(0.4, 1.5), function(p) {
  loss <- sum(p^2)
  cat("loss", loss, "p", p, "\n")
  loss
})
at("print and message", c(0.4, 1.5), decides = NA, function(p) {
  loss <- sum(p^2)
  print(loss)
  message("loss: ", format(loss, digits = 3))
  loss
})
at("sprintf", c(0.4, 1.5), decides = NA, function(p) {
  loss <- sum(p^2)
  label <- sprintf("%.3f (%d)", loss, 2L)
  stopifnot(identical(label, "2.410 (2)") || is.character(label))
  loss
})
at("history of losses", c(0.4, 1.5), function(p) {
  history <- numeric(5)
  x <- p
  for (i in 1:5) {
    loss <- sum((x - c(1, 2))^2)
    history[i] <- loss
    x <- x - 0.1 * 2 * (x - c(1, 2))
  }
  sum(history)
})
at("verbose by a flag", c(0.4, 1.5), function(p, verbose = FALSE) {
  if (verbose) cat("here\n")
  sum(p^3)
})
at("iterations kept in a data frame", c(0.4, 1.5), decides = NA, function(p) {
  log <- data.frame(step = 1:2, value = NA)
  for (i in 1:2) log$value[i] <- as.numeric(op_stop_gradient(sum(p^i)))
  sum(p) * nrow(log)
})
at("paste and toString", c(0.4, 1.5), decides = NA, function(p) {
  note <- paste("at", paste(round(p, 2), collapse = ", "))
  other <- toString(signif(p, 2))
  sum(p) + 0 * nchar(note) * nchar(other)
})
at("warning with a value", c(0.4, 1.5), decides = NA, function(p) {
  suppressWarnings(warning("now ", p[1]))
  sum(p)
})
