/* The C of the Python package's native code, which Python finds in this library where llvmlite is missing. */

#include "../inst/python/gradops/jit/native/runtime/sparse.c"
