/* Logs of operations (R/lazy-scalars.R): what happens once for each operation of a loop. */

#include <R.h>
#include <Rinternals.h>
#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>
#include <Rversion.h>

static SEXP s_scalars, s_missing, s_in_time, s_codes, s_begun, s_words, s_used, s_count, s_make_room, s_classes;
static SEXP s_is, s_dim, s_log, s_names, s_convert, s_pyobj;
static SEXP home, getter;

static SEXP value_in(SEXP frame, SEXP name)
{
#if R_VERSION >= R_Version(4, 5, 0)
    return R_getVarEx(name, frame, FALSE, R_NilValue);
#else
    SEXP found = Rf_findVarInFrame(frame, name);
    if (found == R_UnboundValue) return R_NilValue;
    return TYPEOF(found) == PROMSXP ? Rf_eval(found, frame) : found;
#endif
}

static int has_attributes(SEXP x)
{
#if R_VERSION >= R_Version(4, 5, 0)
    return ANY_ATTRIB(x);
#else
    return ATTRIB(x) != R_NilValue;
#endif
}

/* An environment: `pyobj` is where reticulate looks for Python's object. Active, as the tensor is made when it is read;
 * each has a function of its own, as R gives it no argument that says whose it is. */
static SEXP lazy_handle(SEXP log, SEXP is, SEXP dim)
{
    SEXP handle = PROTECT(R_NewEnv(home, FALSE, 0));
    Rf_defineVar(s_log, log, handle);
    Rf_defineVar(s_is, is, handle);
    if (dim != R_NilValue) Rf_defineVar(s_dim, dim, handle);
    Rf_defineVar(s_convert, value_in(log, s_convert), handle);
    R_MakeActiveBinding(s_pyobj, PROTECT(Rf_eval(getter, handle)), handle);
    Rf_setAttrib(handle, R_ClassSymbol, value_in(log, s_classes));
    UNPROTECT(2);
    return handle;
}

/* The handle of the result of an operation that is appended to the log. */
static SEXP add(SEXP log, double code, double first, double second)
{
    SEXP words = value_in(log, s_words);
    R_xlen_t used = (R_xlen_t) Rf_asReal(value_in(log, s_used));
    if (used == XLENGTH(words)) {
        SEXP call = PROTECT(Rf_lang2(s_make_room, PROTECT(Rf_ScalarReal(3))));
        Rf_eval(call, log);
        UNPROTECT(2);
        words = value_in(log, s_words);
        used = (R_xlen_t) Rf_asReal(value_in(log, s_used));
    }
    if (MAYBE_SHARED(words)) {
        words = PROTECT(Rf_duplicate(words));
        Rf_defineVar(s_words, words, log);
        UNPROTECT(1);
    }
    double *at = REAL(words) + used;
    at[0] = code;
    at[1] = first;
    at[2] = second;
    SEXP is = PROTECT(Rf_duplicate(value_in(log, s_count)));
    Rf_defineVar(s_used, PROTECT(Rf_ScalarReal((double) used + 3)), log);
    Rf_defineVar(s_count, PROTECT(Rf_ScalarReal(Rf_asReal(is) + 1)), log);
    SEXP handle = lazy_handle(log, is, R_NilValue);
    UNPROTECT(3);
    return handle;
}

static SEXP add_to_log(SEXP log, SEXP code, SEXP first, SEXP second)
{
    return add(log, Rf_asReal(code), Rf_asReal(first), Rf_asReal(second));
}

/* The kind of an operand, 1 of a number of the log and 0 of R's own; -1 of what is neither, or has names. */
static int kind_of(SEXP x, double begun, double *value)
{
    if (TYPEOF(x) == ENVSXP) {
        SEXP is = value_in(x, s_is);
        if (TYPEOF(is) != REALSXP || XLENGTH(is) != 1 || value_in(x, s_dim) != R_NilValue) return -1;
        if (REAL(is)[0] < begun || Rf_getAttrib(x, s_names) != R_NilValue) return -1;
        *value = REAL(is)[0] - begun;
        return 1;
    }
    if ((TYPEOF(x) != REALSXP && TYPEOF(x) != INTSXP) || XLENGTH(x) != 1 || has_attributes(x)) return -1;
    *value = Rf_asReal(x);
    return ISNAN(*value) ? -1 : 0;
}

/* The result of an operation on numbers of the log that goes on and R's own; NULL where there is more to it. */
static SEXP operation_on_numbers(SEXP state, SEXP op, SEXP x, SEXP y)
{
    SEXP log = value_in(state, s_scalars);
    if (TYPEOF(log) != ENVSXP) return R_NilValue;
    if (value_in(state, s_missing) != R_NilValue || value_in(state, s_in_time) != R_NilValue) return R_NilValue;
    double begun = Rf_asReal(value_in(log, s_begun)), first, second;
    int one = kind_of(x, begun, &first), other = one < 0 ? -1 : kind_of(y, begun, &second);
    if (other < 0 || one + other == 0) return R_NilValue;
    SEXP code = value_in(value_in(log, s_codes), Rf_installTrChar(STRING_ELT(op, 0)));
    if (code == R_NilValue) return R_NilValue;
    return add(log, Rf_asReal(code) + 4 * one + other, first, second);
}

/* Called when the package is loaded: the parent of handles, and the call that makes the function of one. */
static SEXP start_logs(SEXP namespace, SEXP call)
{
    R_PreserveObject(home = namespace);
    R_PreserveObject(getter = call);
    return R_NilValue;
}

static const R_CallMethodDef methods[] = {
    {"start_logs", (DL_FUNC) &start_logs, 2},
    {"lazy_handle", (DL_FUNC) &lazy_handle, 3},
    {"add_to_log", (DL_FUNC) &add_to_log, 4},
    {"operation_on_numbers", (DL_FUNC) &operation_on_numbers, 4},
    {NULL, NULL, 0},
};

void attribute_visible R_init_gradops(DllInfo *library)
{
    s_scalars = Rf_install("scalars");
    s_missing = Rf_install("missing");
    s_in_time = Rf_install("in_time");
    s_codes = Rf_install("codes");
    s_begun = Rf_install("begun");
    s_words = Rf_install("words");
    s_used = Rf_install("used");
    s_count = Rf_install("count");
    s_make_room = Rf_install("make_room");
    s_classes = Rf_install("classes");
    s_is = Rf_install("gradops_is");
    s_dim = Rf_install("gradops_dim");
    s_log = Rf_install("gradops_log");
    s_names = Rf_install("gradops_names");
    s_convert = Rf_install("convert");
    s_pyobj = Rf_install("pyobj");
    R_registerRoutines(library, NULL, methods, NULL, NULL);
    R_useDynamicSymbols(library, FALSE);
    R_forceSymbols(library, TRUE);
}
