/* The entries of a user's history: an item, and how much its event counts. histories.py has the same. */

#ifndef FELREC_ENTRIES_H
#define FELREC_ENTRIES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "lanes.h"

enum { ROW_BITS = 26, ROW = (1 << ROW_BITS) - 1, USUAL = 16, HIGHEST = 31 };

/* How much an event of this weight counts, in half powers of two: 0 is context, USUAL is 1 or no weight. */
INLINE int32_t step_of(float weight)
{
    uint32_t bits;
    if (!(weight > 0))
        return isnan(weight) ? USUAL : 0;
    memcpy(&bits, &weight, sizeof(bits));
    const int32_t step = (int32_t)(bits >> 22) - 254 + USUAL; /* the exponent, and the first bit after it */
    return step < 1 ? 1 : step > HIGHEST ? HIGHEST : step;
}

/* A row with the step of its event, which is the row itself if that is USUAL. */
INLINE int32_t marked(int32_t row, float weight) { return row | (step_of(weight) ^ USUAL) << ROW_BITS; }

INLINE int32_t step_in(int32_t entry) { return (entry >> ROW_BITS) ^ USUAL; }

INLINE int32_t row_of(int32_t entry) { return entry < 0 ? entry : entry & ROW; }

#endif
