#include <Rinternals.h>

SEXP value_in(SEXP frame, SEXP name); /* NULL where there is none */
int has_attributes(SEXP x);

SEXP program(SEXP numbers, SEXP owner);
SEXP run_program(SEXP handle, SEXP arguments, SEXP attributes);
SEXP results_of_program(SEXP handle);
SEXP are_same(SEXP watched);
SEXP made_by(SEXP state, SEXP result, SEXP f, SEXP arguments, SEXP smooth);
