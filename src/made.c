/* What made an elementwise result (R/code-assignments.R): noted for each operation of a function that leaves elements
 * out. */

#include <string.h>
#include <R.h>
#include <Rinternals.h>
#include "programs.h"

#define DEEPEST 32 /* the longest chain of remembered results: each one keeps its arguments alive */

/* Functions with finite derivatives at finite numbers. `exp()` is not among them, as it may overflow. */
static const char *smooth_functions[] = {"+", "-", "*", "sin", "cos", "tanh", "atan", "abs"};

static int is_number(SEXP x)
{
    return TYPEOF(x) == REALSXP || (TYPEOF(x) == INTSXP && !Rf_inherits(x, "factor"));
}

static double number_at(SEXP x, R_xlen_t i)
{
    return TYPEOF(x) == REALSXP ? REAL(x)[i] : INTEGER(x)[i] == NA_INTEGER ? NA_REAL : (double) INTEGER(x)[i];
}

static int is_smooth(const char *name, SEXP arguments)
{
    for (size_t k = 0; k < sizeof(smooth_functions) / sizeof(char *); k++) {
        if (strcmp(name, smooth_functions[k]) == 0) return 1;
    }
    int divides = strcmp(name, "/") == 0;
    if ((!divides && strcmp(name, "^") != 0) || XLENGTH(arguments) != 2) return 0;
    SEXP second = VECTOR_ELT(arguments, 1);
    if (!is_number(second)) return 0;
    for (R_xlen_t i = 0; i < XLENGTH(second); i++) {
        double value = number_at(second, i);
        if (ISNAN(value) || (divides ? value == 0 : value < 0 || value != nearbyint(value))) return 0;
    }
    return 1;
}

static int all_finite(SEXP x)
{
    for (R_xlen_t i = 0; i < XLENGTH(x); i++) if (!R_FINITE(number_at(x, i))) return 0;
    return 1;
}

/* `f`: a function, or the name of one of base R's, which says whether it is smooth. */
SEXP made_by(SEXP state, SEXP result, SEXP f, SEXP arguments, SEXP smooth)
{
    static SEXP names = NULL, s_made, s_inside;
    if (!names) {
        const char *called[] = {"f", "arguments", "depth"};
        R_PreserveObject(names = Rf_allocVector(STRSXP, 3));
        for (int k = 0; k < 3; k++) SET_STRING_ELT(names, k, Rf_mkChar(called[k]));
        s_made = Rf_install("gradops_made");
        s_inside = Rf_install("inside");
    }
    SEXP inside = value_in(state, s_inside);
    if (TYPEOF(result) != ENVSXP || inside == R_NilValue || Rf_asReal(inside) == 0) return result;
    int named = TYPEOF(f) == STRSXP, depth;
    depth = !(named ? is_smooth(CHAR(STRING_ELT(f, 0)), arguments) : Rf_asLogical(smooth));
    for (R_xlen_t k = 0; k < XLENGTH(arguments); k++) {
        SEXP x = VECTOR_ELT(arguments, k);
        if (x == result) return result; /* as `+x` is */
        if (TYPEOF(x) == ENVSXP) {
            SEXP made = Rf_getAttrib(x, s_made);
            if (made != R_NilValue && Rf_asInteger(VECTOR_ELT(made, 2)) >= depth) {
                depth = Rf_asInteger(VECTOR_ELT(made, 2)) + 1;
            }
        } else if (depth == 0 && is_number(x) && !all_finite(x)) {
            depth = 1;
        }
    }
    if (depth == 0 || depth > DEEPEST) return result;
    SEXP made = PROTECT(Rf_allocVector(VECSXP, 3));
    SET_VECTOR_ELT(made, 0, named ? value_in(R_BaseEnv, Rf_installTrChar(STRING_ELT(f, 0))) : f);
    SET_VECTOR_ELT(made, 1, arguments);
    SET_VECTOR_ELT(made, 2, Rf_ScalarInteger(depth));
    Rf_setAttrib(made, R_NamesSymbol, names);
    Rf_setAttrib(result, s_made, made);
    UNPROTECT(1);
    return result;
}
