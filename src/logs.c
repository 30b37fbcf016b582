/* Logs of operations (R/lazy-scalars.R, lazy-vectors.R): what happens once for each operation of a loop on numbers,
 * short vectors and small matrices, whose elements are noted one by one. Logs of assignments (R/lazy-assignments.R). */

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <R.h>
#include <Rinternals.h>
#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>
#include <Rversion.h>
#include "programs.h"

static SEXP s_scalars, s_missing, s_in_time, s_codes, s_begun, s_words, s_used, s_count, s_make_room, s_classes;
static SEXP s_is, s_dim, s_log, s_names, s_dimnames, s_convert, s_pyobj, s_elements, s_input, s_extent;
static SEXP s_unlogged, s_more, s_plus, s_minus, s_times, s_quotient, s_entries, s_from, s_extents;
static SEXP s_within, s_surroundings, s_lazy;
static SEXP home, getter, entry_names;

SEXP value_in(SEXP frame, SEXP name)
{
#if R_VERSION >= R_Version(4, 5, 0)
    return R_getVarEx(name, frame, FALSE, R_NilValue);
#else
    SEXP found = Rf_findVarInFrame(frame, name);
    if (found == R_UnboundValue) return R_NilValue;
    return TYPEOF(found) == PROMSXP ? Rf_eval(found, frame) : found;
#endif
}

static SEXP parent_of(SEXP env)
{
#if R_VERSION >= R_Version(4, 5, 0)
    return R_ParentEnv(env);
#else
    return ENCLOS(env);
#endif
}

int has_attributes(SEXP x)
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

/* Operands ------------------------------------------------------------------------------------------------------- */

static int most; /* elements of the largest vector that an operation makes: of more, arrays cost less */

#define RANKS 8 /* dimensions of the largest array of which elements are read */

/* Numbers of R's own (kind 0), results in the log (1), or a tensor of one number, which is an input of the log (2). */
typedef struct {
    int kind, size, rank, dim[2];
    double *is;
} Operand;

static double *room(R_xlen_t size)
{
    return (double *) R_alloc(size, sizeof(double));
}

static double at(const Operand *x, int i)
{
    return x->is[i < x->size ? i : i % x->size];
}

/* The log that goes on; NULL where there is none, or there is more to an operation than the log knows. */
static SEXP open_log(SEXP state)
{
    SEXP log = value_in(state, s_scalars);
    return TYPEOF(log) == ENVSXP && value_in(state, s_in_time) == R_NilValue ? log : R_NilValue;
}

static int takes_vectors(SEXP state)
{
    return value_in(state, s_unlogged) == R_NilValue;
}

static int set_dim(Operand *x, SEXP dim)
{
    if (dim == R_NilValue) {
        x->rank = 0;
        return x->size == 1;
    }
    x->rank = (int) XLENGTH(dim);
    if (x->rank < 1 || x->rank > 2) return 0;
    for (int k = 0; k < x->rank; k++) x->dim[k] = TYPEOF(dim) == INTSXP ? INTEGER(dim)[k] : (int) REAL(dim)[k];
    return 1;
}

static int set_values(Operand *x, SEXP values, double less, int limit)
{
    R_xlen_t size = XLENGTH(values);
    if (size < 1 || size > limit) return 0;
    x->size = (int) size;
    x->is = room(size);
    for (int i = 0; i < size; i++) {
        double value = TYPEOF(values) == REALSXP ? REAL(values)[i]
            : INTEGER(values)[i] == NA_INTEGER ? NA_REAL : (double) INTEGER(values)[i];
        if (ISNAN(value)) return 0;
        x->is[i] = value - less;
    }
    return 1;
}

/* TRUE for names that a result would have to keep. */
static int has_names(SEXP x)
{
    if (TYPEOF(x) == ENVSXP) {
        return Rf_getAttrib(x, s_names) != R_NilValue || Rf_getAttrib(x, s_dimnames) != R_NilValue;
    }
    return has_attributes(x) && (Rf_getAttrib(x, R_DimSymbol) == R_NilValue ||
                                 XLENGTH(Rf_getAttrib(x, R_DimSymbol)) != 2 ||
                                 Rf_getAttrib(x, R_DimNamesSymbol) != R_NilValue);
}

#define UNKNOWN (-1) /* a tensor whose elements `know_elements()` (R) has not found yet */

/* 0 for what takes part in no log. */
static int operand_of(Operand *found, SEXP log, SEXP x)
{
    if (TYPEOF(x) == ENVSXP) {
        if (value_in(x, s_missing) != R_NilValue) return 0;
        if (value_in(x, s_log) == log) {
            SEXP is = value_in(x, s_is);
            found->kind = 1;
            return TYPEOF(is) == REALSXP && set_values(found, is, Rf_asReal(value_in(log, s_begun)), INT_MAX) &&
                set_dim(found, value_in(x, s_dim));
        }
        SEXP known = value_in(x, s_elements); /* the log, the kind, the numbers, the dimensions */
        if (TYPEOF(known) != VECSXP || VECTOR_ELT(known, 0) != log) return UNKNOWN;
        found->kind = Rf_asInteger(VECTOR_ELT(known, 1));
        return found->kind > 0 && set_values(found, VECTOR_ELT(known, 2), 0, INT_MAX) &&
            set_dim(found, VECTOR_ELT(known, 3));
    }
    if ((TYPEOF(x) != REALSXP && TYPEOF(x) != INTSXP) || Rf_isObject(x)) return 0;
    found->kind = 0;
    if (!set_values(found, x, 0, most)) return 0;
    SEXP dim = has_attributes(x) ? Rf_getAttrib(x, R_DimSymbol) : R_NilValue;
    if (dim == R_NilValue && found->size > 1) {
        found->rank = 1;
        found->dim[0] = found->size;
        return 1;
    }
    return set_dim(found, dim);
}

/* What the elements of an operand are, for R's code: kind, numbers, dimensions. */
static SEXP elements_in_log(SEXP state, SEXP x)
{
    Operand found;
    SEXP log = open_log(state);
    if (log == R_NilValue || operand_of(&found, log, x) != 1) return R_NilValue;
    if (found.rank > 0 && !takes_vectors(state)) return R_NilValue;
    SEXP result = PROTECT(Rf_allocVector(VECSXP, 3)), names = PROTECT(Rf_allocVector(STRSXP, 3));
    SET_VECTOR_ELT(result, 0, Rf_ScalarInteger(found.kind));
    SEXP is = SET_VECTOR_ELT(result, 1, Rf_allocVector(REALSXP, found.size));
    memcpy(REAL(is), found.is, found.size * sizeof(double));
    if (found.rank > 0) {
        SEXP dim = SET_VECTOR_ELT(result, 2, Rf_allocVector(INTSXP, found.rank));
        memcpy(INTEGER(dim), found.dim, found.rank * sizeof(int));
    }
    const char *called[] = {"kind", "is", "dim"};
    for (int k = 0; k < 3; k++) SET_STRING_ELT(names, k, Rf_mkChar(called[k]));
    Rf_setAttrib(result, R_NamesSymbol, names);
    UNPROTECT(2);
    return result;
}

/* Operations ----------------------------------------------------------------------------------------------------- */

/* Room for operations at the end of the log, which are to be written there at once, and the number of the first. */
static double *append(SEXP log, int several, double *number)
{
    SEXP words = value_in(log, s_words);
    R_xlen_t used = (R_xlen_t) Rf_asReal(value_in(log, s_used));
    if (used + 3 * several > XLENGTH(words)) {
        SEXP call = PROTECT(Rf_lang2(s_make_room, PROTECT(Rf_ScalarReal(3 * several))));
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
    *number = Rf_asReal(value_in(log, s_count));
    /* Both are made before one is set, as an error in between would leave half of a record. */
    SEXP filled = PROTECT(Rf_ScalarReal((double) used + 3 * several));
    SEXP count = PROTECT(Rf_ScalarReal(*number + several));
    Rf_defineVar(s_used, filled, log);
    Rf_defineVar(s_count, count, log);
    UNPROTECT(2);
    return REAL(words) + used;
}

static double *note(double *row, double code, double first, double second)
{
    row[0] = code;
    row[1] = first;
    row[2] = second;
    return row + 3;
}

/* The handle of results whose numbers are those of the log. */
static SEXP handle_of(SEXP log, const double *numbers, int size, int rank, const int *dim)
{
    SEXP is = PROTECT(Rf_allocVector(REALSXP, size)), dims = PROTECT(rank ? Rf_allocVector(INTSXP, rank) : R_NilValue);
    memcpy(REAL(is), numbers, size * sizeof(double));
    if (rank) memcpy(INTEGER(dims), dim, rank * sizeof(int));
    SEXP handle = lazy_handle(log, is, dims);
    UNPROTECT(2);
    return handle;
}

/* The numbers of operations that follow one another. */
static SEXP handle_from(SEXP log, double first, int size, int rank, const int *dim)
{
    double *numbers = room(size);
    for (int i = 0; i < size; i++) numbers[i] = first + i;
    return handle_of(log, numbers, size, rank, dim);
}

static double code_of(SEXP log, SEXP name)
{
    SEXP code = value_in(value_in(log, s_codes), name);
    return code == R_NilValue ? -1 : Rf_asReal(code);
}

/* The numbers of operations of one code on operands that are recycled. */
static SEXP rows_in_log(SEXP log, SEXP code, SEXP first, SEXP second)
{
    R_xlen_t codes = XLENGTH(code), firsts = XLENGTH(first), seconds = XLENGTH(second);
    R_xlen_t size = codes > firsts ? codes : firsts;
    if (seconds > size) size = seconds;
    code = PROTECT(Rf_coerceVector(code, REALSXP));
    first = PROTECT(Rf_coerceVector(first, REALSXP));
    second = PROTECT(Rf_coerceVector(second, REALSXP));
    SEXP numbers = PROTECT(Rf_allocVector(REALSXP, size));
    double number, *row = append(log, (int) size, &number);
    for (R_xlen_t i = 0; i < size; i++) {
        row = note(row, REAL(code)[i % codes], REAL(first)[i % firsts], REAL(second)[i % seconds]);
        REAL(numbers)[i] = number + (double) i;
    }
    UNPROTECT(4);
    return numbers;
}

static int is_logged(SEXP x)
{
    return TYPEOF(x) == ENVSXP && value_in(x, s_log) != R_NilValue;
}

/* The operand whose form the result of an arithmetic operation has by R's rules; NULL where R warns, or refuses. */
static const Operand *form_of(const Operand *x, const Operand *y)
{
    if (x->rank == y->rank && memcmp(x->dim, y->dim, x->rank * sizeof(int)) == 0) return x;
    const Operand *large = y->rank > x->rank || (y->rank == x->rank && y->size > x->size) ? y : x;
    int less = (large == x ? y : x)->size;
    return (x->rank == 2 && y->rank == 2) || less > large->size || large->size % less ? NULL : large;
}

/* An operation, element by element; NULL where it is for Python, NA where R's code must begin the log first, find the
 * elements of an operand, or, if `unnamed`, keep the names of one. */
static SEXP operation_in_log(SEXP state, SEXP op, SEXP x, SEXP y, SEXP unnamed)
{
    SEXP log = open_log(state);
    Operand one, other;
    if (log == R_NilValue) {
        return is_logged(x) || is_logged(y) ? Rf_ScalarLogical(NA_LOGICAL) : R_NilValue;
    }
    int first = operand_of(&one, log, x), second = first ? operand_of(&other, log, y) : 0;
    if (!first || !second) return R_NilValue;
    if (first == UNKNOWN || second == UNKNOWN || (Rf_asLogical(unnamed) && (has_names(x) || has_names(y)))) {
        return Rf_ScalarLogical(NA_LOGICAL);
    }
    if (one.kind + other.kind == 0) return R_NilValue;
    const Operand *large = form_of(&one, &other);
    if (!large || large->size > most || (large->rank && !takes_vectors(state))) return R_NilValue;
    double code = code_of(log, Rf_installTrChar(STRING_ELT(op, 0))), number;
    if (code < 0) return R_NilValue;
    int size = large->size;
    double *row = append(log, size, &number);
    for (int i = 0; i < size; i++) row = note(row, code + 4 * one.kind + other.kind, at(&one, i), at(&other, i));
    return handle_from(log, number, size, large->rank, large->dim);
}

/* A function of any number of operands, element by element.
 *
 * Three numbers are an operation: of five operands the first four stand in two operations "more", and the last with a 0
 * in the operation itself. "more" has no result, but is counted: Python counts along, and the numbers must be the same.
 */
static SEXP call_in_log(SEXP state, SEXP code, SEXP arguments, int given)
{
    SEXP log = open_log(state);
    int pairs = (given + 1) / 2;
    if (log == R_NilValue || given < 1) return R_NilValue;
    Operand *operands = (Operand *) R_alloc(given + 1, sizeof(Operand));
    const Operand *large = operands; /* the first of the largest, whose form the result has */
    for (int k = 0; k < given; k++) {
        if (operand_of(operands + k, log, VECTOR_ELT(arguments, k)) != 1) return R_NilValue;
        if (operands[k].size > large->size) large = operands + k;
    }
    if (large->size > most || (large->rank && !takes_vectors(state))) return R_NilValue;
    Operand *last = operands + given;
    double none = 0;
    last->kind = 0, last->size = 1, last->is = &none;
    double more = code_of(log, s_more), number, *numbers = room(large->size);
    double *row = append(log, pairs * large->size, &number);
    for (int i = 0; i < large->size; i++) {
        for (int k = 0; k < pairs; k++) {
            Operand *x = operands + 2 * k, *y = x + 1;
            double what = k == pairs - 1 ? Rf_asReal(code) : more;
            row = note(row, what + 4 * x->kind + y->kind, at(x, i), at(y, i));
        }
        numbers[i] = number + (i + 1) * pairs - 1;
    }
    return handle_of(log, numbers, large->size, large->rank, large->dim);
}

static SEXP function_in_log(SEXP state, SEXP code, SEXP arguments)
{
    return call_in_log(state, code, arguments, (int) XLENGTH(arguments));
}

/* The same for a function of the core (`function_code()`, R) of operands without names; `key` is its kind and family.
 * The settings, TRUE or FALSE, follow `count` operands. NULL where R's code must decide. */
static SEXP known_function_in_log(SEXP state, SEXP key, SEXP count, SEXP arguments)
{
    char name[128];
    SEXP log = open_log(state);
    if (log == R_NilValue) return R_NilValue;
    int given = Rf_asInteger(count), used = snprintf(name, sizeof(name), "%s", CHAR(STRING_ELT(key, 0)));
    for (int k = given; k < XLENGTH(arguments) && used < (int) sizeof(name); k++) {
        SEXP setting = VECTOR_ELT(arguments, k);
        if (TYPEOF(setting) != LGLSXP || XLENGTH(setting) != 1) return R_NilValue;
        used += snprintf(name + used, sizeof(name) - used, LOGICAL(setting)[0] ? " TRUE" : " FALSE");
    }
    if (used >= (int) sizeof(name) - 12) return R_NilValue;
    snprintf(name + used, sizeof(name) - used, " %d", given);
    SEXP code = value_in(value_in(log, s_codes), Rf_install(name));
    if (code == R_NilValue || ISNAN(Rf_asReal(code))) return R_NilValue;
    for (int k = 0; k < given; k++) if (has_names(VECTOR_ELT(arguments, k))) return R_NilValue;
    return call_in_log(state, code, arguments, given);
}

/* The sums of the first one, two, ... numbers, or their products; the last one alone unless `all`. */
static SEXP running_in_log(SEXP state, SEXP op, SEXP x, SEXP all)
{
    SEXP log = open_log(state);
    Operand of;
    if (log == R_NilValue || !is_logged(x) || operand_of(&of, log, x) != 1) return R_NilValue;
    if (of.rank && !takes_vectors(state)) return R_NilValue;
    SEXP name = Rf_installTrChar(STRING_ELT(op, 0));
    /* Ties of extremes share the gradient, which they would not do one after the other. */
    if (of.size > 2 && name != s_plus && name != s_times) return R_NilValue;
    double begun = Rf_asReal(value_in(log, s_begun)), *numbers = room(of.size);
    numbers[0] = of.is[0] + begun;
    if (of.size > 1) {
        double code = code_of(log, name) + 5, number;
        double *row = append(log, of.size - 1, &number);
        for (int i = 1; i < of.size; i++) {
            row = note(row, code, numbers[i - 1] - begun, of.is[i]);
            numbers[i] = number + i - 1;
        }
    }
    return Rf_asLogical(all) ? handle_of(log, numbers, of.size, 1, &of.size)
        : handle_of(log, numbers + of.size - 1, 1, 0, NULL);
}

/* The elements of operands, of which one is of the log, as one vector. */
static SEXP joined_in_log(SEXP state, SEXP parts, SEXP unnamed)
{
    SEXP log = open_log(state);
    int count = (int) XLENGTH(parts), size = 0, logged = 0, outside = 0;
    if (log == R_NilValue || count < 1 || !takes_vectors(state)) return R_NilValue;
    Operand *of = (Operand *) R_alloc(count, sizeof(Operand));
    for (int k = 0; k < count; k++) {
        SEXP part = VECTOR_ELT(parts, k);
        if (operand_of(of + k, log, part) != 1) return R_NilValue;
        if (Rf_asLogical(unnamed) && has_names(part)) return R_NilValue;
        size += of[k].size;
        if (of[k].kind != 1) outside += of[k].size;
        if (is_logged(part)) logged = 1;
    }
    if (!logged || outside > most) return R_NilValue;
    /* Two vectors may be a pair, which R's code marks. */
    if (Rf_asLogical(unnamed) && count == 2 && of[0].size > 1 && of[0].size == of[1].size) return R_NilValue;
    double begun = Rf_asReal(value_in(log, s_begun)), code = code_of(log, s_times), number = 0, *numbers = room(size);
    double *row = outside ? append(log, outside, &number) : NULL;
    int to = 0;
    for (int k = 0; k < count; k++) {
        for (int i = 0; i < of[k].size; i++) {
            if (of[k].kind == 1) {
                numbers[to++] = of[k].is[i] + begun;
            } else { /* each element is a result */
                row = note(row, code + 4 * of[k].kind, of[k].is[i], 1);
                numbers[to++] = number++;
            }
        }
    }
    return handle_of(log, numbers, size, 1, &size);
}

/* Rows and columns that vectors are in a product: whichever fits. */
static void as_matrices(Operand *x, Operand *y)
{
    if (x->rank == 1) {
        int row = x->dim[0] == y->dim[0];
        x->dim[1] = row ? x->dim[0] : 1;
        if (row) x->dim[0] = 1;
    }
    if (y->rank == 1) {
        int row = y->dim[0] != x->dim[1];
        y->dim[1] = row ? y->dim[0] : 1;
        if (row) y->dim[0] = 1;
    }
}

/* `x %*% y` by R's rules. */
static SEXP product_in_log(SEXP state, SEXP x, SEXP y, SEXP unnamed)
{
    SEXP log = open_log(state);
    Operand one, other;
    if (log == R_NilValue || !takes_vectors(state)) return R_NilValue;
    if (operand_of(&one, log, x) != 1 || operand_of(&other, log, y) != 1) return R_NilValue;
    if (!one.rank || !other.rank || one.kind + other.kind == 0) return R_NilValue;
    if (Rf_asLogical(unnamed) && (has_names(x) || has_names(y))) return R_NilValue;
    if (one.rank + other.rank == 2 && one.size != other.size && one.size > 1) return R_NilValue;
    as_matrices(&one, &other);
    int rows = one.dim[0], inner = one.dim[1], columns = other.dim[1], size = rows * columns;
    if (inner != other.dim[0] || size * inner > 3 * most) return R_NilValue;
    double times = code_of(log, s_times) + 4 * one.kind + other.kind, plus = code_of(log, s_plus) + 5;
    double begun = Rf_asReal(value_in(log, s_begun)), number;
    double *row = append(log, size * (2 * inner - 1), &number);
    for (int k = 0; k < inner; k++) {
        for (int j = 0; j < columns; j++) {
            for (int i = 0; i < rows; i++) row = note(row, times, one.is[i + k * rows], other.is[k + j * inner]);
        }
        if (k > 0) { /* the sums so far, which come before the products, and these */
            double before = number - begun - size;
            for (int i = 0; i < size; i++) row = note(row, plus, before + i, number - begun + i);
            number += size;
        }
        number += size;
    }
    int dim[] = {rows, columns};
    return handle_from(log, number - size, size, 2, dim);
}

/* The determinant of a matrix with one or two rows: the number of the result. */
static double determinant_of(SEXP log, const double *m, int rows)
{
    if (rows == 1) return m[0];
    double times = code_of(log, s_times) + 5, minus = code_of(log, s_minus) + 5, number;
    double *row = append(log, 3, &number), is = number - Rf_asReal(value_in(log, s_begun));
    row = note(row, times, m[0], m[3]);
    row = note(row, times, m[1], m[2]);
    note(row, minus, is, is + 1);
    return is + 2;
}

/* The numbers of a square matrix with one or two rows; NULL for anything else. */
static SEXP matrix_in_log(SEXP state, SEXP x, Operand *m)
{
    SEXP log = open_log(state);
    int fits = log != R_NilValue && takes_vectors(state) && operand_of(m, log, x) == 1 && m->kind == 1;
    return fits && m->rank == 2 && m->dim[0] == m->dim[1] && m->dim[0] <= 2 ? log : R_NilValue;
}

static SEXP determinant_in_log(SEXP state, SEXP x)
{
    Operand m;
    SEXP log = matrix_in_log(state, x, &m);
    if (log == R_NilValue) return R_NilValue;
    double number = determinant_of(log, m.is, m.dim[0]) + Rf_asReal(value_in(log, s_begun));
    return handle_of(log, &number, 1, 0, NULL);
}

/* `solve(a, b)`, or the inverse where `b` is NULL, of a matrix with one or two rows. */
static SEXP solution_in_log(SEXP state, SEXP a, SEXP b)
{
    Operand m, right = {0};
    SEXP log = matrix_in_log(state, a, &m);
    if (log == R_NilValue) return R_NilValue;
    int rows = m.dim[0], inverts = b == R_NilValue;
    if (!inverts && (operand_of(&right, log, b) != 1 || !right.rank || right.dim[0] != rows)) return R_NilValue;
    double begun = Rf_asReal(value_in(log, s_begun)), by = determinant_of(log, m.is, rows), number;
    double quotient = code_of(log, s_quotient), times = code_of(log, s_times), minus = code_of(log, s_minus);
    int size = inverts ? m.size : right.size;
    if (rows == 1) {
        double *row = append(log, size, &number);
        for (int i = 0; i < size; i++) {
            row = inverts ? note(row, quotient + 1, 1, by) : note(row, quotient + 4 * right.kind + 1, right.is[i], by);
        }
    } else if (inverts) {
        double *row = append(log, 5, &number), less = number - begun;
        row = note(row, minus + 1, 0, by);
        row = note(row, quotient + 5, m.is[3], by);
        row = note(row, quotient + 5, m.is[1], less);
        row = note(row, quotient + 5, m.is[2], less);
        note(row, quotient + 5, m.is[0], by);
        number++;
    } else { /* by Cramer's rule, column by column */
        double *row = append(log, 4 * size, &number), is = number - begun;
        times += 4 + right.kind;
        for (int i = 0; i < size; i++) row = note(row, times, m.is[i % 2 ? 0 : 3], right.is[i]);
        for (int i = 0; i < size; i++) row = note(row, times, m.is[i % 2 ? 1 : 2], right.is[i % 2 ? i - 1 : i + 1]);
        for (int i = 0; i < size; i++) row = note(row, minus + 5, is + i, is + size + i);
        for (int i = 0; i < size; i++) row = note(row, quotient + 5, is + 2 * size + i, by);
        number += 3 * size;
    }
    return inverts ? handle_from(log, number, size, 2, m.dim) : handle_from(log, number, size, right.rank, right.dim);
}

/* `t(x)` of a matrix or a vector of the log without names. */
static SEXP transposed_in_log(SEXP state, SEXP x)
{
    SEXP log = open_log(state);
    Operand of;
    if (log == R_NilValue || !takes_vectors(state) || !is_logged(x) || has_names(x)) return R_NilValue;
    if (operand_of(&of, log, x) != 1) return R_NilValue;
    int rows = of.rank == 2 ? of.dim[0] : of.size, dim[] = {of.size / rows, rows};
    double begun = Rf_asReal(value_in(log, s_begun)), *numbers = room(of.size);
    for (int i = 0; i < of.size; i++) numbers[(i % rows) * dim[0] + i / rows] = of.is[i] + begun;
    return handle_of(log, numbers, of.size, 2, dim);
}

/* The positions that an index means among `size`, and their number; 0 where it is for Python to find or to refuse, or
 * there are more than `limit`. NULL is all. */
static int positions_of(SEXP place, double size, int limit, double **positions)
{
    if (place == R_NilValue) {
        if (size > limit) return 0;
        double *found = *positions = room((R_xlen_t) size);
        for (int i = 0; i < size; i++) found[i] = i;
        return (int) size;
    }
    if (Rf_isObject(place)) return 0;
    if (has_attributes(place) && Rf_getAttrib(place, R_DimSymbol) != R_NilValue) return 0;
    R_xlen_t given = XLENGTH(place);
    if (given < 1 || given > limit + size) return 0;
    double least = R_PosInf, largest = R_NegInf, *at = room(given);
    for (R_xlen_t i = 0; i < given; i++) {
        if (TYPEOF(place) == INTSXP && INTEGER(place)[i] == NA_INTEGER) return 0;
        at[i] = TYPEOF(place) == REALSXP ? REAL(place)[i] : (double) INTEGER(place)[i];
        if (ISNAN(at[i])) return 0;
        if (at[i] < least) least = at[i];
        if (at[i] > largest) largest = at[i];
    }
    if (least >= 1 && largest < size + 1 && given <= limit) {
        for (R_xlen_t i = 0; i < given; i++) at[i] = (double) (long long) at[i] - 1;
        *positions = at;
        return (int) given;
    }
    if (largest > -1 || size > limit + given) return 0;
    char *out = memset(R_alloc((size_t) size, 1), 0, (size_t) size);
    for (R_xlen_t i = 0; i < given; i++) if (at[i] > -size - 1) out[-(long long) at[i] - 1] = 1;
    double *found = *positions = room((R_xlen_t) size);
    int left = 0;
    for (int i = 0; i < size; i++) if (!out[i]) found[left++] = i;
    return left <= limit ? left : 0;
}

/* Logs of assignments (R/lazy-assignments.R) ---------------------------------------------------------------------- */

/* The place of one existing element in an array whose newest handle is `x`; below 0 where R's code must find it. */
static R_xlen_t cell_of(SEXP x, SEXP places)
{
    SEXP log = value_in(x, s_log), from = value_in(log, s_from), dim = value_in(log, s_extents);
    int rank = (int) XLENGTH(places);
    if (TYPEOF(from) != INTSXP || Rf_asInteger(value_in(log, s_count)) != Rf_asInteger(value_in(x, s_is))) return -1;
    if (rank > 1 && (XLENGTH(dim) != rank || (TYPEOF(dim) != INTSXP && TYPEOF(dim) != REALSXP))) return -1;
    R_xlen_t cell = 0, stride = 1;
    for (int k = 0; k < rank; k++) {
        SEXP place = VECTOR_ELT(places, k);
        if (TYPEOF(place) != INTSXP && TYPEOF(place) != REALSXP) return -1;
        if (XLENGTH(place) != 1 || Rf_isObject(place)) return -1;
        double at = Rf_asReal(place), length = (double) XLENGTH(from);
        if (rank > 1) length = TYPEOF(dim) == INTSXP ? INTEGER(dim)[k] : REAL(dim)[k];
        if (!(at >= 1 && at < length + 1)) return -1;
        cell += stride * ((R_xlen_t) at - 1);
        stride *= (R_xlen_t) length;
    }
    return rank ? cell : -1;
}

/* The value that was last assigned to one place; NULL where R's code must find it. */
static SEXP assigned_part(SEXP x, SEXP places)
{
    R_xlen_t cell = cell_of(x, places);
    SEXP log = value_in(x, s_log);
    int last = cell < 0 ? 0 : INTEGER(value_in(log, s_from))[cell];
    if (last == NA_INTEGER || last < 1) return R_NilValue;
    SEXP entry = VECTOR_ELT(value_in(log, s_entries), last - 1); /* cells and their part */
    return XLENGTH(VECTOR_ELT(entry, 0)) == 1 ? VECTOR_ELT(entry, 1) : R_NilValue;
}

/* `x` after `part` is assigned to `cells`, integers from 1 within the array: the newest handle of `log`. */
static SEXP append_assigned(SEXP state, SEXP log, SEXP x, SEXP cells, SEXP part)
{
    SEXP from = value_in(log, s_from), entries = value_in(log, s_entries);
    SEXP dim = value_in(log, s_extents), within = value_in(state, s_surroundings);
    int count = Rf_asInteger(value_in(log, s_count));
    SEXP entry = PROTECT(Rf_allocVector(VECSXP, 2)), is = PROTECT(Rf_ScalarInteger(count + 1));
    SET_VECTOR_ELT(entry, 0, cells);
    SET_VECTOR_ELT(entry, 1, part);
    Rf_setAttrib(entry, R_NamesSymbol, entry_names);
    if (XLENGTH(dim) == 1) dim = Rf_ScalarInteger((int) XLENGTH(from)); /* a vector may have grown */
    PROTECT(dim);
    SEXP handle = PROTECT(lazy_handle(log, is, dim));
    Rf_defineVar(s_within, within == R_NilValue ? Rf_ScalarReal(0) : within, handle);
    SEXP kept[] = {R_ClassSymbol, s_dimnames, s_names};
    for (int k = 0; k < 3; k++) {
        SEXP value = Rf_getAttrib(x, kept[k]);
        if (value != R_NilValue) Rf_setAttrib(handle, kept[k], value);
    }
    if (MAYBE_SHARED(from)) from = Rf_duplicate(from);
    PROTECT(from);
    if (count >= XLENGTH(entries) || MAYBE_SHARED(entries)) { /* room for as many again */
        SEXP longer = Rf_allocVector(VECSXP, 2 * (R_xlen_t) count + 8);
        for (int k = 0; k < count; k++) SET_VECTOR_ELT(longer, k, VECTOR_ELT(entries, k));
        entries = longer;
    }
    PROTECT(entries);
    /* The log changes only now, as an error above must leave it as it was. */
    SET_VECTOR_ELT(entries, count, entry);
    for (R_xlen_t i = 0; i < XLENGTH(cells); i++) INTEGER(from)[INTEGER(cells)[i] - 1] = count + 1;
    Rf_defineVar(s_entries, entries, log);
    Rf_defineVar(s_from, from, log);
    Rf_defineVar(s_count, is, log);
    Rf_defineVar(s_lazy, Rf_ScalarLogical(1), state);
    UNPROTECT(6);
    return handle;
}

/* `x[...] <- value` of a number of the log of operations, at one existing element of an array that holds such numbers,
 * as in most loops; NULL for anything else. */
static SEXP assigned_number(SEXP state, SEXP x, SEXP places, SEXP value)
{
    SEXP numbers = value_in(state, s_scalars), log = TYPEOF(x) == ENVSXP ? value_in(x, s_log) : R_NilValue;
    if (TYPEOF(numbers) != ENVSXP || TYPEOF(log) != ENVSXP || value_in(log, s_scalars) != numbers) return R_NilValue;
    if (TYPEOF(value) != ENVSXP || value_in(value, s_log) != numbers || value_in(value, s_dim) != R_NilValue) {
        return R_NilValue;
    }
    SEXP ours = Rf_getAttrib(x, R_ClassSymbol), theirs = Rf_getAttrib(value, R_ClassSymbol);
    if ((ours != theirs && !R_compute_identical(ours, theirs, 16)) || Rf_getAttrib(x, s_names) != R_NilValue) {
        return R_NilValue;
    }
    R_xlen_t cell = cell_of(x, places);
    if (cell < 0) return R_NilValue;
    SEXP at = PROTECT(Rf_ScalarInteger((int) cell + 1)), handle = append_assigned(state, log, x, at, value);
    UNPROTECT(1);
    return handle;
}

/* Parts --------------------------------------------------------------------------------------------------------- */

/* `x[...]` of a few elements, as a number or a vector; NA where R's code must find the dimensions of `x` first, begin the
 * log, or make `x` its input. `places`: an index for each dimension, or one, NULL for all. */
static SEXP part_in_log(SEXP state, SEXP x, SEXP places, SEXP unnamed)
{
    SEXP log = value_in(state, s_scalars);
    int count = (int) XLENGTH(places), begun = TYPEOF(log) == ENVSXP;
    if (begun ? open_log(state) == R_NilValue : TYPEOF(log) != LGLSXP || LOGICAL(log)[0] == NA_LOGICAL) return R_NilValue;
    if (TYPEOF(x) != ENVSXP || count < 1 || value_in(x, s_missing) != R_NilValue) return R_NilValue;
    if (Rf_asLogical(unnamed) && Rf_getAttrib(x, s_names) != R_NilValue) return R_NilValue;
    if (count == 1 ? VECTOR_ELT(places, 0) == R_NilValue : Rf_getAttrib(x, s_dimnames) != R_NilValue) return R_NilValue;
    for (int k = 0; k < count; k++) {
        int type = TYPEOF(VECTOR_ELT(places, k));
        if (type != NILSXP && type != INTSXP && type != REALSXP) return R_NilValue;
    }
    SEXP of = value_in(x, s_log);
    if (TYPEOF(of) == ENVSXP && value_in(of, s_entries) != R_NilValue) {
        SEXP part = assigned_part(x, places);
        if (part != R_NilValue) return part;
    }
    int own = begun && of == log;
    SEXP is = value_in(x, own ? s_is : s_input), dim = value_in(x, own ? s_dim : s_extent);
    if (own && (TYPEOF(is) != REALSXP || dim == R_NilValue)) return R_NilValue;
    /* of a tensor the log of which it is an input, its number there and its size */
    int known = own || (begun && TYPEOF(is) == VECSXP && VECTOR_ELT(is, 0) == log);
    if (known && !own) is = VECTOR_ELT(is, 1);
    double limit = own ? (double) XLENGTH(is) : known ? REAL(is)[1] : R_PosInf;
    if (limit < 0) return R_NilValue; /* it is no input, as a matrix of whole numbers or of another function */
    if (dim == R_NilValue && !(count == 1 && (known || XLENGTH(VECTOR_ELT(places, 0)) == 1))) {
        return Rf_ScalarLogical(NA_LOGICAL);
    }
    double lengths[RANKS], all = 1;
    if (dim != R_NilValue) {
        int rank = (int) XLENGTH(dim);
        if ((TYPEOF(dim) != INTSXP && TYPEOF(dim) != REALSXP) || rank > RANKS || (count > 1 && rank != count)) {
            return R_NilValue;
        }
        for (int k = 0; k < rank; k++) {
            lengths[k] = TYPEOF(dim) == INTSXP ? INTEGER(dim)[k] : REAL(dim)[k];
            all *= lengths[k];
        }
        if (all < limit) limit = all;
    }
    if (count == 1) lengths[0] = limit;
    /* Elements of results are results; each of an input is read by an operation. */
    int limit_of_part = own ? INT_MAX / 2 : most, size = 1, sizes[2], rank = 0;
    double none = 0, *cells = &none, stride = 1;
    for (int k = 0; k < count; k++) {
        double *here, *before = cells;
        int several = positions_of(VECTOR_ELT(places, k), lengths[k], limit_of_part, &here);
        if (several == 0 || several > limit_of_part / size || (several > 1 && rank == 2)) return R_NilValue;
        cells = room((R_xlen_t) several * size);
        for (int j = 0; j < several; j++) {
            for (int i = 0; i < size; i++) cells[j * size + i] = before[i] + here[j] * stride;
        }
        size *= several;
        if (several > 1) sizes[rank++] = several;
        stride *= lengths[k];
    }
    if (rank && !takes_vectors(state)) return R_NilValue;
    if (!known) return Rf_ScalarLogical(NA_LOGICAL);
    double *numbers = room(size), number;
    if (own) {
        for (int i = 0; i < size; i++) numbers[i] = REAL(is)[(int) cells[i]];
    } else {
        double input = REAL(is)[0], *row = append(log, size, &number);
        for (int i = 0; i < size; i++) {
            row = note(row, 0, input, cells[i]);
            numbers[i] = number + i;
        }
    }
    return handle_of(log, numbers, size, rank, sizes);
}

/* TRUE if a function other than base R's, of one of the names, is visible from an environment. */
static SEXP sees_function(SEXP from, SEXP symbols)
{
    for (R_xlen_t k = 0; k < XLENGTH(symbols); k++) {
        for (SEXP env = from; env != R_BaseEnv && env != R_EmptyEnv; env = parent_of(env)) {
            SEXP found = value_in(env, VECTOR_ELT(symbols, k));
            if (found != R_NilValue && Rf_isFunction(found)) return Rf_ScalarLogical(1);
        }
    }
    return Rf_ScalarLogical(0);
}

/* Called when the package is loaded: the parent of handles, and the call that makes the function of one. */
static SEXP start_logs(SEXP namespace, SEXP call, SEXP most_together)
{
    most = Rf_asInteger(most_together);
    R_PreserveObject(home = namespace);
    R_PreserveObject(getter = call);
    R_PreserveObject(entry_names = Rf_allocVector(STRSXP, 2));
    SET_STRING_ELT(entry_names, 0, Rf_mkChar("cells"));
    SET_STRING_ELT(entry_names, 1, Rf_mkChar("part"));
    return R_NilValue;
}

static const R_CallMethodDef methods[] = {
    {"start_logs", (DL_FUNC) &start_logs, 3},
    {"lazy_handle", (DL_FUNC) &lazy_handle, 3},
    {"rows_in_log", (DL_FUNC) &rows_in_log, 4},
    {"elements_in_log", (DL_FUNC) &elements_in_log, 2},
    {"operation_in_log", (DL_FUNC) &operation_in_log, 5},
    {"function_in_log", (DL_FUNC) &function_in_log, 3},
    {"known_function_in_log", (DL_FUNC) &known_function_in_log, 4},
    {"running_in_log", (DL_FUNC) &running_in_log, 4},
    {"joined_in_log", (DL_FUNC) &joined_in_log, 3},
    {"product_in_log", (DL_FUNC) &product_in_log, 4},
    {"determinant_in_log", (DL_FUNC) &determinant_in_log, 2},
    {"solution_in_log", (DL_FUNC) &solution_in_log, 3},
    {"transposed_in_log", (DL_FUNC) &transposed_in_log, 2},
    {"sees_function", (DL_FUNC) &sees_function, 2},
    {"part_in_log", (DL_FUNC) &part_in_log, 4},
    {"append_assigned", (DL_FUNC) &append_assigned, 5},
    {"assigned_number", (DL_FUNC) &assigned_number, 4},
    {"made_by", (DL_FUNC) &made_by, 5},
    {"program", (DL_FUNC) &program, 2},
    {"run_program", (DL_FUNC) &run_program, 3},
    {"are_same", (DL_FUNC) &are_same, 1},
    {"results_of_program", (DL_FUNC) &results_of_program, 1},
    {NULL, NULL, 0},
};

void attribute_visible R_init_gradops(DllInfo *library)
{
    s_scalars = Rf_install("scalars");
    s_missing = Rf_install("gradops_missing");
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
    s_dimnames = Rf_install("gradops_dimnames");
    s_elements = Rf_install("gradops_elements");
    s_input = Rf_install("gradops_input");
    s_extent = Rf_install("gradops_extent");
    s_unlogged = Rf_install("unlogged");
    s_entries = Rf_install("entries");
    s_from = Rf_install("from");
    s_extents = Rf_install("dim");
    s_within = Rf_install("gradops_within");
    s_surroundings = Rf_install("surroundings");
    s_lazy = Rf_install("lazy");
    s_more = Rf_install("more");
    s_plus = Rf_install("+");
    s_minus = Rf_install("-");
    s_times = Rf_install("*");
    s_quotient = Rf_install("by_determinant");
    s_convert = Rf_install("convert");
    s_pyobj = Rf_install("pyobj");
    R_registerRoutines(library, NULL, methods, NULL, NULL);
    R_useDynamicSymbols(library, FALSE);
    R_forceSymbols(library, TRUE);
}
