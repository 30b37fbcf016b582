# Code as people write it: functions that call functions.

y <- c(0.3, -1.2, 0.8, 0.5, -0.4, 1.1)
n <- length(y)

recursion <- function(w, a, b) {
  h <- numeric(n)
  h[1] <- w / (1 - b)
  for (t in 2:n) h[t] <- w + a * y[t - 1]^2 + b * h[t - 1]
  h
}
transformed <- function(p) {
  q <- numeric(length(p))
  q[1] <- exp(p[1])
  q[-1] <- plogis(p[-1])
  q
}
by_way <- function(p) recursion(p[1], p[2], p[3])
clamp <- function(x, low = 0, high = 1) {
  if (x < low) low else if (x > high) high else x
}
fill_by <- function(n, f, ...) {
  out <- numeric(n)
  for (i in seq_len(n)) out[i] <- f(i, ...)
  out
}
links <- list(
  log = list(inverse = function(eta) {
    mu <- rep(NA, length(eta))
    for (i in seq_along(eta)) mu[i] <- exp(eta[i])
    mu
  }),
  identity = list(inverse = function(eta) eta)
)
make_loss <- function(data, power) {
  size <- length(data)
  penalty <- function(p) {
    s <- numeric(2)
    s[2] <- abs(p)^power
    sum(s)
  }
  function(p) {
    r <- numeric(size)
    for (i in seq_len(size)) r[i] <- (data[i] - p[1])^2
    sum(r) + penalty(p[2])
  }
}
made <- make_loss(y, 3)
odd <- function(k, v) if (k == 0) v[1] else even(k - 1, replace(v, 1, v[1] * v[2]))
even <- function(k, v) if (k == 0) v[2] else odd(k - 1, replace(v, 2, v[1] + v[2]))
loglik <- function(model, p) UseMethod("loglik")
loglik.normal <- function(model, p) {
  ll <- numeric(length(model$y))
  for (i in seq_along(ll)) ll[i] <- dnorm(model$y[i], p[1], p[2], log = TRUE)
  sum(ll)
}
loglik.default <- function(model, p) stop("no such model")
predict.slope <- function(object, p, ...) {
  out <- rep(0, 2)
  out[1] <- p[1] * object$x
  out[2] <- p[2]
  out
}
`%+=%` <- function(a, b) {
  a[1] <- a[1] + b
  a
}
`second<-` <- function(x, value) {
  x[2] <- value
  x
}
counter <- function() {
  count <- 0
  function(p) {
    count <<- count + 1
    h <- numeric(2)
    h[1] <- p[1] * 2
    h[2] <- p[2]
    sum(h^2)
  }
}
counting <- counter()
model <- new.env()
model$rate <- 2
model$score <- function(p) {
  s <- numeric(2)
  s[] <- p * model$rate
  sum(s^2)
}
Account <- setRefClass("GradopsAccount",
  fields = list(rate = "numeric"),
  methods = list(
    grow = function(p, years) {
      b <- numeric(years)
      b[1] <- p[1]
      for (i in 2:years) b[i] <- b[i - 1] * (1 + rate * p[2])
      b
    },
    total = function(p) sum(grow(p, 3))
  ),
  where = environment()
)
account <- Account$new(rate = 0.5)

methods::setClass("GradopsModel", methods::representation(n = "numeric"), where = environment())
methods::setGeneric("modelled", function(model, p) standardGeneric("modelled"), where = environment())
methods::setMethod("modelled", "GradopsModel", function(model, p) {
  h <- numeric(model@n)
  h[1] <- p[1]
  for (i in 2:model@n) h[i] <- h[i - 1] * p[2]
  h
}, where = environment())
modelling <- methods::new("GradopsModel", n = 3)

at("generic of S4", c(0.4, 0.7), function(p) sum(modelled(modelling, p)))
at("match.arg and switch", c(0.4, 0.7), function(p) {
  g <- function(v, type = c("first", "second")) {
    type <- match.arg(type)
    switch(type, first = {
      h <- numeric(1)
      h[1] <- v[1]
      h
    }, second = v[2])
  }
  g(p) * g(p, "second")
})
at("assignment in a condition", 0.4, function(p) {
  k <- 3
  s <- 0
  while ((k <- k - 1) > 0) s <- s + p^k
  s
})
at("functions that share a state", c(0.4, 0.7), function(p) {
  account <- function() {
    v <- 0
    list(add = function(x) v <<- v + x, get = function() v)
  }
  a <- account()
  a$add(p[1])
  a$add(p[2]^2)
  a$get()
})
at("helper", c(0.1, 0.2, 0.7), function(p) {
  h <- recursion(p[1], p[2], p[3])
  sum(log(h) + y^2 / h)
})
at("helper of a helper", c(0.1, 0.2, 0.7), function(p) sum(by_way(p)^2))
at("helpers one after the other", c(0.1, 0.2, 0.7), function(p) sum(by_way(transformed(p))))
at("helper decides", c(0.1, 1.2), decides = TRUE, function(p) clamp(p[1]) * 3 + clamp(p[2])^2 + p[2])
at("helper as an argument", c(0.1, 1.2), function(p) {
  power <- function(i, p) p[1]^i + p[2]
  sum(fill_by(4, power, p))
})
at("helper in a function of apply's", c(0.4, 0.2, 0.7), function(p) sum(vapply(1:2, function(i) by_way(p)[i + 2], 0)))
at("lapply by name", c(0.4, 0.2), function(p) sum(unlist(lapply(list(p, p^2), "transformed"))))
at("do.call of a helper", c(0.1, 0.2, 0.7), function(p) sum(do.call(recursion, as.list(p))))
at("do.call of a helper by name", c(0.1, 0.2, 0.7), function(p) sum(do.call("recursion", list(p[1], p[2], p[3]))))
at("get by name", c(0.4, 0.2), function(p) {
  f <- get("transformed")
  sum(f(p)^2)
})
at("Map over a helper", c(0.4, 0.2), function(p) sum(unlist(Map(transformed, list(p, 2 * p)))))
at("mapply over a helper", c(0.4, 0.2), function(p) sum(mapply(function(a) sum(transformed(c(a, p))), 1:2)))
at("Reduce over a helper", c(0.4, 0.2), function(p) sum(Reduce(`%+=%`, 1:3, p)))
at("list of functions", c(0.4, 0.2), function(p) sum(links$log$inverse(p)))
at("list of functions by [[", c(0.4, 0.2), function(p) {
  link <- "log"
  sum(links[[link]]$inverse(p)) + sum(links[["identity"]]$inverse(p))
})
at("function out of a list, assigned", c(0.4, 0.2), function(p) {
  f <- links$log$inverse
  sum(sapply(list(p), links$log$inverse)) + p[1]
})
at("closure of a maker", c(0.4, 0.2), made)
at("mutual recursion", c(0.4, 0.2), function(p) odd(5, p))
at("S3 generic and methods", c(0.4, 0.7), function(p) loglik(structure(list(y = y), class = "normal"), p))
at("method of stats' generic", c(0.4, 0.7), function(p) sum(predict(structure(list(x = 3), class = "slope"), p)^2))
at("operator of one's own", c(0.4, 0.7), function(p) sum(p %+=% p[2]))
at("replacement function of one's own", c(0.4, 0.7), function(p) {
  v <- c(1, 2, 3)
  second(v) <- p[1] * p[2]
  sum(v^2)
})
at("counter in a closure", c(0.4, 0.7), counting)
at("functions in an environment", c(0.4, 0.7), function(p) model$score(p))
at("reference class", c(0.4, 0.7), function(p) account$total(p))
at("stats:: by its full name", c(0.4, 0.7), function(p) -sum(stats::dnorm(y, p[1], p[2], log = TRUE)))
at("base:: by its full name", c(0.4, 0.7), function(p) sum(base::sapply(1:3, function(i) p[1]^i)) + base::c(1, p)[3])
at("variables named as functions", c(0.4, 0.7), function(p) {
  c <- 2
  dt <- 0.1
  sd <- p[2]
  beta <- c(p[1], sd)
  sum(beta * c) * dt
})
at("eval of an expression", c(0.4, 0.7), function(p) {
  e <- quote(a^2 * exp(b))
  eval(e, list(a = p[1], b = p[2]))
})
at("eval(parse(text))", c(0.4, 0.7), function(p) {
  eval(parse(text = "h <- numeric(2); h[1] <- p[1]; h[2] <- p[2] * h[1]; sum(h)"))
})
at("default arguments", c(0.4, 0.7), function(p, h = numeric(2)) {
  h[1] <- p[1]
  h[2] <- p[2]
  prod(h)
})
at("... to a helper", c(0.4, 0.2), function(p, ...) {
  inner <- function(...) {
    v <- c(...)
    h <- numeric(length(v))
    h[] <- v
    sum(h^2)
  }
  inner(p[1], p[2], 3)
})
at("Recall", 0.4, function(p) {
  g <- function(k, v) if (k == 0) 1 else v * Recall(k - 1, v)
  g(3, p)
})
at("on.exit", c(0.4, 0.2), function(p) {
  done <- FALSE
  on.exit(done <- TRUE)
  h <- c(0, 0)
  h[1:2] <- p
  sum(h^2)
})
at("return in a loop", c(0.4, 0.2), function(p) {
  for (v in p) for (i in 1:3) if (i == 2) return(v^2 + p[2])
})
at("early return of a helper", c(0.4, 0.2), decides = TRUE, function(p) {
  f <- function(x) {
    for (v in x) if (v < 0.3) return(v^3)
    0
  }
  f(p) * p[1]
})
at("apply family over filled", c(0.4, 0.2), function(p) {
  M <- matrix(0, 2, 2)
  M[1, ] <- p
  M[2, ] <- p^2
  sum(apply(M, 1, prod)) + sum(sapply(1:2, function(i) sum(M[i, ])))
})
at("complex arithmetic of parts", c(0.4, 0.2), function(p) {
  z <- complex(real = 1, imaginary = 2)
  Re(z) * p[1] + Im(z) * p[2]^2
})
