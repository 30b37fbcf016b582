library(testthat)
library(gradops)

test_check("gradops")
