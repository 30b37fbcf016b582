# pkgbuild (behind devtools and pak) runs this before it builds the package. inst/python is a symbolic link to python/;
# where git or untar could not make a link (Windows), this puts a copy of the Python core there, and keeps it current.
core <- function(folder) {
  files <- list.files(folder, recursive = TRUE)
  setNames(tools::md5sum(file.path(folder, files)), files)
}

if (!identical(core("inst/python/gradops"), core("python/gradops"))) {
  unlink("inst/python", recursive = TRUE)
  dir.create("inst/python", recursive = TRUE)
  file.copy("python/gradops", "inst/python", recursive = TRUE)
}
