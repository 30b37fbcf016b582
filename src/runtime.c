/* The C of the Python package's native code, which Python finds in this library where llvmlite is missing. */

#include "../inst/python/gradops/jit/native/runtime/elementwise.c"
#include "../inst/python/gradops/jit/native/runtime/interpreter.c"
#include "../inst/python/gradops/jit/native/runtime/matrices.c"
#include "../inst/python/gradops/jit/native/runtime/numbers.c"
#include "../inst/python/gradops/jit/native/runtime/parts.c"
#include "../inst/python/gradops/jit/native/runtime/record.c"
#include "../inst/python/gradops/jit/native/runtime/sparse.c"
#include "../inst/python/gradops/jit/native/runtime/tile_loops.c"
#include "../inst/python/gradops/jit/native/runtime/tiles.c"
#include "../inst/python/gradops/jit/native/runtime/vectors.c"
