# Prints the R packages that DESCRIPTION and the tools need and this R lacks.
# With --install LIBRARY, installs those into LIBRARY instead, where a CRAN mirror answers.

fields <- read.dcf("DESCRIPTION", c("Imports", "Suggests"))
needed <- trimws(c(strsplit(fields, ",")[[1]], strsplit(fields, ",")[[2]], "lintr", "roxygen2"))
names(needed) <- sub("[ (].*", "", needed)
needed <- needed[names(needed) != "keras3"] # `.ci/run` builds it in a library of its own
minimum <- ifelse(grepl(">=", needed), gsub(".*>= *|\\).*", "", needed), "0")

missing_packages <- function() {
  have <- mapply(names(needed), minimum, FUN = function(package, version) {
    nzchar(system.file(package = package)) && packageVersion(package) >= version
  })
  names(needed)[!have]
}

arguments <- commandArgs(TRUE)
if (length(arguments) == 0) {
  cat(missing_packages())
} else {
  options(timeout = 60)
  if (getOption("repos")["CRAN"] == "@CRAN@") {
    chooseCRANmirror(ind = 1, local.only = TRUE)
  }
  if (nrow(available.packages()) > 0) {
    install.packages(missing_packages(), lib = arguments[2], Ncpus = parallel::detectCores())
  } else {
    message("No CRAN mirror answers.")
  }
}
