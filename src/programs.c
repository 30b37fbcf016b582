/* Compiled objectives that are one run of native code, without Python (R/jit.R, python/gradops/interop/r/jit.py).
 *
 * The code is Python's, which has handed over where it stands and a memory for it to run in, and keeps both as long as
 * the handle here lives. What is not as it was then, and what the code cannot do alone, is left to Python. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <R.h>
#include <Rinternals.h>
#include <Rversion.h>
#include "programs.h"

typedef int (*Parts)(uintptr_t table, int64_t count, uintptr_t functions, double *memory);

/* Where numbers lie in the memory: at -1 where the code does not read them. */
typedef struct {
    int64_t at, size;
} Extent;

typedef struct {
    Parts parts;
    uintptr_t table, functions;
    int64_t count;
    double *memory;
    const int64_t *changes; /* of settings, `seen` when the code was handed over */
    int64_t seen, left, value, holds; /* `left`: calls until Python checks a result */
    Extent gradient;
    int inputs;
    Extent input[];
} Program;

#define FIXED 12        /* numbers of a program before those of its inputs */
#define EXCEPTIONS 0xFF /* of floating-point numbers, in the code's result; what else it may say is for Python */

static void free_program(SEXP handle)
{
    free(R_ExternalPtrAddr(handle));
    R_ClearExternalPtr(handle);
}

/* A handle. `numbers` and `owner`, an object of Python's, are of alone() in jit.py. One that comes back from a file
 * has no address, and runs nothing. */
SEXP program(SEXP numbers, SEXP owner)
{
    const double *x = REAL(numbers);
    int inputs = (int) (XLENGTH(numbers) - FIXED) / 2;
    SEXP handle = PROTECT(R_MakeExternalPtr(NULL, R_NilValue, owner));
    R_RegisterCFinalizerEx(handle, free_program, FALSE);
    Program *p = malloc(sizeof(Program) + inputs * sizeof(Extent));
    if (p == NULL) Rf_error("no memory for a compiled program");
    p->parts = (Parts) (uintptr_t) x[0];
    p->table = (uintptr_t) x[1];
    p->count = (int64_t) x[2];
    p->functions = (uintptr_t) x[3];
    p->memory = (double *) (uintptr_t) x[4];
    p->changes = (const int64_t *) (uintptr_t) x[5];
    p->seen = (int64_t) x[6];
    p->left = (int64_t) x[7];
    p->value = (int64_t) x[8];
    p->gradient = (Extent) {(int64_t) x[9], (int64_t) x[10]};
    p->holds = (int64_t) x[11];
    p->inputs = inputs;
    for (int i = 0; i < inputs; i++) {
        p->input[i] = (Extent) {(int64_t) x[FIXED + 2 * i], (int64_t) x[FIXED + 2 * i + 1]};
    }
    R_SetExternalPtrAddr(handle, p);
    UNPROTECT(1);
    return handle;
}

static int takes(const Program *p, SEXP arguments)
{
    if (XLENGTH(arguments) != p->inputs || Rf_getAttrib(arguments, R_NamesSymbol) != R_NilValue) return 0;
    for (int i = 0; i < p->inputs; i++) {
        SEXP x = VECTOR_ELT(arguments, i);
        if (TYPEOF(x) != REALSXP || XLENGTH(x) != p->input[i].size) return 0;
        if (Rf_getAttrib(x, R_DimSymbol) != R_NilValue) return 0;
    }
    return 1;
}

/* Value and gradient of the last run. */
SEXP results_of_program(SEXP handle)
{
    const Program *p = R_ExternalPtrAddr(handle);
    const char *names[] = {"value", "derivative", ""};
    SEXP results = PROTECT(Rf_mkNamed(VECSXP, names));
    SET_VECTOR_ELT(results, 0, Rf_ScalarReal(p->memory[p->value]));
    SEXP gradient = Rf_allocVector(REALSXP, (R_xlen_t) p->gradient.size);
    SET_VECTOR_ELT(results, 1, gradient);
    memcpy(REAL(gradient), p->memory + p->gradient.at, p->gradient.size * sizeof(double));
    UNPROTECT(1);
    return results;
}

/* True if none has attributes, as none had when the program was made. */
static int are_bare(SEXP arguments, SEXP attributes)
{
    for (R_xlen_t i = 0; i < XLENGTH(arguments); i++) {
        if (VECTOR_ELT(attributes, i) != R_NilValue || has_attributes(VECTOR_ELT(arguments, i))) return 0;
    }
    return 1;
}

/* Value and gradient; a whole number, the exceptions of floating-point numbers, where there were any, of which Python
 * may have to warn; NA where R is to compare the arguments' attributes with those that the program was made for, if any
 * are given here; FALSE where Python is to check a result; NULL where Python is to do it all. */
SEXP run_program(SEXP handle, SEXP arguments, SEXP attributes)
{
    Program *p = R_ExternalPtrAddr(handle);
    if (p == NULL || *p->changes != p->seen || !takes(p, arguments)) return R_NilValue;
    if (p->left <= 0) return Rf_ScalarLogical(FALSE);
    p->left--;
    if (attributes != R_NilValue) {
        if (XLENGTH(attributes) != XLENGTH(arguments)) return R_NilValue;
        if (!are_bare(arguments, attributes)) return Rf_ScalarLogical(NA_LOGICAL);
    }
    for (int i = 0; i < p->inputs; i++) {
        const Extent to = p->input[i];
        if (to.at >= 0) memcpy(p->memory + to.at, REAL(VECTOR_ELT(arguments, i)), to.size * sizeof(double));
    }
    int raised = p->parts(p->table, p->count, p->functions, p->memory);
    if (raised & ~EXCEPTIONS || (p->holds >= 0 && p->memory[p->holds] == 0)) return R_NilValue;
    return raised ? Rf_ScalarInteger(raised) : results_of_program(handle);
}

static SEXP parent_of(SEXP frame)
{
#if R_VERSION >= R_Version(4, 5, 0)
    return R_ParentEnv(frame);
#else
    return ENCLOS(frame);
#endif
}

/* TRUE if all that is watched (R/jit-dependencies.R) are variables that are found where they were, and are the same
 * objects; where FALSE, R's code compares more. */
SEXP are_same(SEXP watched)
{
    static const char *fields[] = {"name", "env", "holder", "value", "mode"};
    for (R_xlen_t i = 0; i < Rf_xlength(watched); i++) {
        SEXP item = VECTOR_ELT(watched, i), names = Rf_getAttrib(item, R_NamesSymbol);
        if (XLENGTH(item) != 5 || TYPEOF(names) != STRSXP) return Rf_ScalarLogical(FALSE);
        for (int k = 0; k < 5; k++) {
            if (strcmp(CHAR(STRING_ELT(names, k)), fields[k])) return Rf_ScalarLogical(FALSE);
        }
        SEXP env = VECTOR_ELT(item, 1), holder = VECTOR_ELT(item, 2), value = VECTOR_ELT(item, 3);
        if (TYPEOF(env) != ENVSXP || TYPEOF(holder) != ENVSXP) return Rf_ScalarLogical(FALSE);
        SEXP name = Rf_installTrChar(STRING_ELT(VECTOR_ELT(item, 0), 0));
        for (; env != holder; env = parent_of(env)) {
            if (env == R_EmptyEnv || R_existsVarInFrame(env, name)) return Rf_ScalarLogical(FALSE);
        }
        if (value == R_NilValue || value_in(env, name) != value) return Rf_ScalarLogical(FALSE);
    }
    return Rf_ScalarLogical(TRUE);
}
