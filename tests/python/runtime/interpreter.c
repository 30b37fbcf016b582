/* Checks random programs of valid instructions against an interpreter without computed jumps, which computes elements of
 * vectors one by one. */

#include "bytes.h"
#include <stddef.h>
#include "../../../python/gradops/jit/native/runtime/elementwise.c"
#include "../../../python/gradops/jit/native/runtime/interpreter.c"
#include "../../../python/gradops/jit/native/runtime/numbers.c"
#include "../../../python/gradops/jit/native/runtime/vectors.c"

/* The memory's regions: integers that are neither 0 nor -1, small numbers, indices, counters of loops, numbers and
 * integers that instructions read and write, and the results of vector instructions. Numbers are not read as integers, as
 * compilers may choose which of two NaN an operation returns. */
enum { LARGEST = 40, MOST = 24, SPAN = 4 * LARGEST };
enum { DIVISORS = 0, SMALL = 8, INDICES = 16, COUNTERS = INDICES + LARGEST, CELLS = COUNTERS + MOST };
enum { WHOLES = CELLS + SPAN, OUT = WHOLES + SPAN, SIZE = OUT + LARGEST };

typedef struct {
    Functions head;
    double (*of_one)(double, int), (*of_two)(double, double, int);
} Table;

#define ENTRY(NAME) ((int32_t) (offsetof(Table, NAME) / sizeof(void *)))

static double half(double x, int unused)
{
    (void) unused;
    return x / 2;
}

static double difference(double x, double y, int unused)
{
    (void) unused;
    return x - y;
}

static int none(int exceptions)
{
    return exceptions & 0;
}

static int is_fused(int opcode)
{
    return opcode >= OPCODE_add_add_left && opcode <= OPCODE_divide_divide_right;
}

static int divides(int opcode)
{
    return opcode == OPCODE_whole_fmod || opcode == OPCODE_whole_floor_divide || opcode == OPCODE_whole_mod;
}

static int reads_integers(int opcode)
{
    return (opcode >= OPCODE_whole_add && opcode <= OPCODE_float32_of_whole) || opcode == OPCODE_whole_argmax
        || opcode == OPCODE_whole_argmin || opcode == OPCODE_whole_argsort || opcode == OPCODE_index;
}

static int writes_integers(int opcode)
{
    const int is_conversion = opcode == OPCODE_int64_of_float || opcode == OPCODE_int32_of_float;
    if (opcode == OPCODE_float64_of_whole || opcode == OPCODE_float32_of_whole) return 0;
    return is_conversion || reads_integers(opcode);
}

static int has_vector(int opcode)
{
    const int is_matrix = opcode >= OPCODE_product && opcode <= OPCODE_inverse;
    return (opcode <= OPCODE_gather && !is_matrix && !is_fused(opcode)) || opcode == OPCODE_load
        || opcode == OPCODE_store;
}

static int has_numbers(int opcode)
{
    return opcode < OPCODE_prod || opcode > OPCODE_gather;
}

/* Writes an instruction; returns the number of its words. */
static int generate(Bytes *bytes, int32_t *at, int k, const int *starts)
{
    int opcode = next(bytes) % OPCODES;
    const int is_vector = has_vector(opcode) && (!has_numbers(opcode) || next(bytes) % 2);
    if (!is_vector && !has_numbers(opcode)) opcode = OPCODE_add;
    const int least = opcode <= OPCODE_scipy2 || opcode >= OPCODE_pick ? 0 : 1;
    const int n = is_vector ? least + next(bytes) % (LARGEST + 1 - least) : 1;
    int32_t operand[3], stride[3];
    for (int i = 0; i < 3; i++) {
        const int far = next(bytes) % 8;
        stride[i] = far == 0 ? 0 : far < 5 ? 1 : far - 4; /* 0 to 3 */
        const int span = (n ? n - 1 : 0) * stride[i];
        operand[i] = (reads_integers(opcode) ? WHOLES : CELLS) + next(bytes) % (SPAN - span);
        if (far == 7 && is_vector) operand[i] += span, stride[i] = -stride[i];
    }
    int32_t out = is_vector ? OUT : (writes_integers(opcode) ? WHOLES : CELLS) + next(bytes) % SPAN;
    if (divides(opcode)) operand[1] = DIVISORS + next(bytes) % 8, stride[1] = 0;
    if (opcode == OPCODE_int64_of_float || opcode == OPCODE_int32_of_float)
        operand[0] = SMALL + next(bytes) % 8, stride[0] = 0;
    if (opcode == OPCODE_c1) operand[1] = ENTRY(head.exp);
    if (opcode == OPCODE_c2) operand[2] = ENTRY(head.fmod);
    if (opcode == OPCODE_scipy1) operand[1] = ENTRY(of_one);
    if (opcode == OPCODE_scipy2) operand[2] = ENTRY(of_two);
    if (opcode == OPCODE_pick) operand[0] = CELLS + 3 * 2 + next(bytes) % (SPAN - 12), operand[1] = INDICES;
    if (opcode >= OPCODE_load && opcode <= OPCODE_store4) { /* counters are at most 3, and so are distances of rows */
        const int is_load = opcode <= OPCODE_load4;
        const int32_t far = CELLS + next(bytes) % (SPAN - 9 - LARGEST), near = CELLS + next(bytes) % (SPAN - LARGEST);
        operand[0] = is_load ? far : near;
        out = is_load ? near : far;
        operand[1] = COUNTERS + next(bytes) % MOST;
        operand[2] = stride[0] = next(bytes) % 4;
    }
    if (opcode == OPCODE_again) { /* a loop from an earlier instruction */
        const int first = next(bytes) % (k + 1);
        out = COUNTERS + k, operand[0] = starts[k] - starts[first], operand[1] = 1, operand[2] = next(bytes) % 4;
    }
    if (opcode == OPCODE_unless) operand[0] = SHORT;
    if (opcode == OPCODE_index) operand[1] = 50 + next(bytes);
    const int32_t words[] = {
        opcode + VECTOR * is_vector, out, operand[0], operand[1], operand[2], n, stride[0], stride[1], stride[2],
    };
    memcpy(at, words, sizeof words);
    if (!is_vector) return SHORT;
    if (opcode != OPCODE_gather) return LONG;
    for (int i = 0; i < n; i++) at[LONG + i] = CELLS + next(bytes) % SPAN;
    return LONG + n;
}

#define ONE(NAME, OPERANDS, VALUE)                                                          \
    case OPCODE_##NAME: {                                                                   \
        const double x = a[i * sa], y = OPERANDS > 1 ? b[i * sb] : 0, z = OPERANDS > 2 ? c[i * sc] : 0; \
        const int64_t number = OPERANDS == 1 ? at[3] : at[4];                               \
        (void) y, (void) z, (void) number;                                                  \
        out[i] = VALUE;                                                                     \
        break;                                                                              \
    }

/* Executes one instruction that is not a jump, on elements one by one. */
static void execute(const int32_t *at, double *memory, const Functions *functions)
{
    const int is_vector = at[0] >= VECTOR, opcode = at[0] % VECTOR, is_row = opcode >= OPCODE_load;
    const int64_t n = is_vector ? at[5] : is_row ? (opcode - OPCODE_load) % 4 + 1 : 1;
    const int64_t sa = is_vector ? at[6] : 1, sb = is_vector ? at[7] : 1, sc = is_vector ? at[8] : 1;
    double *out = memory + at[1];
    const double *a = memory + at[2], *b = memory + at[3], *c = memory + at[4];
    double result = a[0], total = 0, old[4];
    for (int64_t i = 1; i < n; i++) {
        if (opcode == OPCODE_prod) result *= a[i * sa];
        else if (opcode == OPCODE_min) result = SMALLER(result, a[i * sa]);
        else if (opcode == OPCODE_max || opcode == OPCODE_logsumexp || opcode == OPCODE_softmax
                 || opcode == OPCODE_log_softmax) result = LARGER(result, a[i * sa]);
    }
    if (opcode == OPCODE_load || opcode == OPCODE_store) {
        const int64_t row = whole(b[0]) * (is_vector ? sa : at[4]);
        for (int64_t i = 0; i < n; i++) opcode == OPCODE_load ? (out[i] = a[row + i]) : (out[row + i] = a[i]);
        return;
    }
    if (is_row) { /* loads all before it stores any */
        const int64_t row = whole(b[0]) * at[4];
        const int is_load = opcode <= OPCODE_load4;
        for (int64_t i = 0; i < n; i++) old[i] = a[i + row * is_load];
        for (int64_t i = 0; i < n; i++) out[i + row * !is_load] = old[i];
        return;
    }
    switch (opcode) {
    case OPCODE_prod: case OPCODE_max: case OPCODE_min: out[0] = result; return;
    case OPCODE_sum: case OPCODE_argmax: case OPCODE_argmin: case OPCODE_whole_argmax: case OPCODE_whole_argmin:
    case OPCODE_argsort: case OPCODE_whole_argsort: /* vectors.c checks these */
        functions->vector[opcode]((const Words *) at, memory, functions);
        return;
    case OPCODE_dot:
        for (int64_t i = 0; i < n; i++) total += a[i * sa] * b[i * sb];
        out[0] = total;
        return;
    case OPCODE_pick:
        for (int64_t i = 0; i < n; i++) out[i] = a[whole(b[i]) * sa];
        return;
    case OPCODE_gather:
        for (int64_t i = 0; i < n; i++) out[i] = memory[at[LONG + i]];
        return;
    case OPCODE_softmax: case OPCODE_log_softmax: case OPCODE_logsumexp:
        total = exp(a[0] - result);
        for (int64_t i = 1; i < n; i++) total += exp(a[i * sa] - result);
        for (int64_t i = 0; i < n && opcode == OPCODE_softmax; i++) out[i] = exp(a[i * sa] - result) / total;
        for (int64_t i = 0; i < n && opcode == OPCODE_log_softmax; i++) out[i] = a[i * sa] - result - log(total);
        if (opcode == OPCODE_logsumexp) out[0] = isfinite(result) ? log(total) + result : result;
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        switch (opcode) {
            SIDE_BY_SIDE(ONE) PLAIN(ONE) FUSED(ONE) WHOLE(ONE) CALLS(ONE)
        default: require(0, "the opcode");
        }
    }
}

static int32_t wanted(const int32_t *at, double *memory, const Functions *functions)
{
    for (;;) {
        int64_t position = at[0] < VECTOR && at[0] != END ? whole(memory[at[1]]) : 0;
        switch (at[0]) {
        case END: return 0;
        case OPCODE_outside: return at[1] << 8 | WAITING;
        case OPCODE_require:
            if (memory[at[1]] == 0) return FAILED;
            at += SHORT;
            break;
        case OPCODE_unless: at += memory[at[1]] == 0 ? at[2] : SHORT; break;
        case OPCODE_again:
            if (position != at[4]) memory[at[1]] = cell(position + at[3]);
            at += position == at[4] ? SHORT : -at[2];
            break;
        case OPCODE_index:
            position = whole(memory[at[2]]);
            if (position < 0) position = (int64_t) ((uint64_t) position + (uint64_t) at[3]);
            memory[at[1]] = cell(position);
            if (position < 0 || position >= at[3]) return FAILED;
            at += SHORT;
            break;
        default:
            execute(at, memory, functions);
            at += at[0] < VECTOR ? SHORT : at[0] == VECTOR + OPCODE_gather ? LONG + at[5] : LONG;
        }
    }
}

#define VECTOR_FUNCTION(NAME, ...) table.head.vector[OPCODE_##NAME] = vector_##NAME;

static void check(Bytes *bytes)
{
    Table table = {.head = {.clear = none, .test = none, .exp = exp, .log = log, .log1p = log1p, .fmod = fmod}};
    table.of_one = half, table.of_two = difference;
    SIDE_BY_SIDE(VECTOR_FUNCTION) PLAIN(VECTOR_FUNCTION) WHOLE(VECTOR_FUNCTION) CALLS(VECTOR_FUNCTION)
    ELEMENTS(VECTOR_FUNCTION)
    VECTOR_FUNCTION(load) VECTOR_FUNCTION(store)

    /* Memory and code have exactly their size, so sanitizers see each access beyond. */
    const int shift = next(bytes) % 8;
    double *room = calloc(SIZE + shift, 8), *memory = room + shift, *other = malloc(8 * SIZE);
    for (int i = 0; i < 8; i++) {
        memory[DIVISORS + i] = cell(i < 4 ? i + 1 : -(i + 2) * 1000);
        memory[SMALL + i] = 2.5 * i - 9;
    }
    for (int i = 0; i < LARGEST; i++) memory[INDICES + i] = cell(i * 7 % 3);
    uint32_t state = (uint32_t) next(bytes) * 256 + (uint32_t) next(bytes); /* few bytes, as instructions need many */
    for (int i = CELLS; i < SIZE; i++) {
        state = state * 1664525u + 1013904223u;
        const int x = (int) (state >> 24);
        const double odd[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 5e-324, 1e308, 1};
        memory[i] = i >= WHOLES ? cell(x < 8 ? INT64_MIN + x : x - 60) : x < 8 ? odd[x] : (x - 130) / 4.0;
    }
    memcpy(other, memory, 8 * SIZE);

    int32_t words[MOST * (LONG + LARGEST) + 1];
    int starts[MOST + 1] = {0}, count = 1 + next(bytes) % MOST, passes = 0;
    for (int k = 0; k < count; k++) {
        starts[k + 1] = starts[k] + generate(bytes, words + starts[k], k, starts);
        if (words[starts[k]] == OPCODE_again && passes++ >= 4) /* nested loops would take long */
            words[starts[k]] = OPCODE_copy, words[starts[k] + 1] = CELLS, words[starts[k] + 2] = SMALL;
        /* `unless` jumps over the next instruction */
        if (k && words[starts[k - 1]] == OPCODE_unless) words[starts[k - 1] + 2] = starts[k + 1] - starts[k - 1];
    }
    words[starts[count]] = END;
    int32_t *code = exact(words, sizeof *words * (size_t) (starts[count] + 1));
    const int32_t result = run(code, memory, &table.head), expected = wanted(code, other, &table.head);
    require(result == expected, "how the program ended");
    for (int i = 0; i < SIZE; i++) {
        const int is_nan = memory[i] != memory[i] && other[i] != other[i];
        require(is_nan || whole(memory[i]) == whole(other[i]), "the memory");
    }
    free(code), free(room), free(other);
}
