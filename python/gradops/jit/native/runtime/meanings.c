/* Each operation as a function, whose LLVM IR Python copies to compiled loops and groups (meaning() in machine.py). */

#include "operations.h"

#define MEANING(NAME, OPERANDS, VALUE)                                                \
    double meaning_##NAME(double x, double y, double z, const Functions *functions)   \
    {                                                                                 \
        (void) y, (void) z, (void) functions;                                         \
        return VALUE;                                                                 \
    }

SIDE_BY_SIDE(MEANING)
PLAIN(MEANING)
FUSED(MEANING)
WHOLE(MEANING)
