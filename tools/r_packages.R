# Prints the R packages that DESCRIPTION and the tools need and this R lacks.
# With --install LIBRARY it installs them into LIBRARY instead, if a CRAN mirror answers. With --as-cran it prints
# "--as-cran" if a mirror answers, since R CMD check needs one for that option.

fields <- read.dcf("DESCRIPTION", c("Imports", "Suggests"))
needed <- trimws(c(strsplit(fields, ",")[[1]], strsplit(fields, ",")[[2]], "lintr", "roxygen2"))
names(needed) <- sub("[ (].*", "", needed)
# `.ci/run` installs keras3 in a separate library; comparisons with the other two are skipped without them.
needed <- needed[!names(needed) %in% c("keras3", "marginaleffects", "RTMB")]
minimum <- ifelse(grepl(">=", needed), gsub(".*>= *|\\).*", "", needed), "0")

missing_packages <- function() {
  have <- mapply(names(needed), minimum, FUN = function(package, version) {
    nzchar(system.file(package = package)) && packageVersion(package) >= version
  })
  names(needed)[!have]
}

mirror_answers <- function() {
  options(timeout = 60)
  if (getOption("repos")["CRAN"] == "@CRAN@") {
    chooseCRANmirror(ind = 1, local.only = TRUE)
  }
  nrow(suppressWarnings(available.packages())) > 0
}

arguments <- commandArgs(TRUE)
if (length(arguments) == 0) {
  cat(missing_packages())
} else if (arguments[1] == "--as-cran") {
  cat(if (mirror_answers()) "--as-cran")
} else {
  if (mirror_answers()) {
    install.packages(missing_packages(), lib = arguments[2], Ncpus = parallel::detectCores())
  } else {
    message("No CRAN mirror answers.")
  }
}
