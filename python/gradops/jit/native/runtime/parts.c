/* Executes a program whose hot loops are compiled (loop_compiler.py). */

#include "functions.h"

/* A compiled loop, or the interpreter and its bytecode. */
typedef struct {
    int32_t (*run)(const int32_t *code, double *memory, const Functions *functions);
    const int32_t *code;
} Part;

/* Executes parts in order; returns the floating-point exceptions raised, or FAILED after a part that ended early. */
int32_t parts(const Part *table, int64_t count, const Functions *functions, double *memory)
{
    int32_t raised = 0;
    for (int64_t i = 0; i < count; i++) {
        raised |= table[i].run(table[i].code, memory, functions);
        if (raised & FAILED) return FAILED;
    }
    return raised;
}
