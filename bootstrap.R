# pkgbuild (behind devtools, remotes and pak) runs this before it builds the package. inst/python is a symbolic link
# to python/; where git or untar could not make links (Windows), this puts a copy of the Python core there.
if (!dir.exists("inst/python/gradops")) {
  unlink("inst/python")
  dir.create("inst/python", recursive = TRUE)
  file.copy("python/gradops", "inst/python", recursive = TRUE)
}
