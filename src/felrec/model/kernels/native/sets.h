/* Sets of items, by open addressing. */

#ifndef FELREC_SETS_H
#define FELREC_SETS_H

#include "lanes.h"

enum { NO_ITEM = -1 };

typedef struct {
    int32_t *rows, *numbers; /* `numbers` of pairs, only while pairs are collected */
    int64_t mask;
} Set;

INLINE int64_t slot_of(const Set *set, int32_t row)
{
    int64_t slot = (int64_t)((uint32_t)row * 2654435769u >> 8) & set->mask;
    while (set->rows[slot] != row && set->rows[slot] != NO_ITEM)
        slot = (slot + 1) & set->mask;
    return slot;
}

INLINE int contains(const Set *set, int32_t row) { return set->rows[slot_of(set, row)] == row; }

/* A number of slots in which this many items are found fast. */
INLINE int64_t slots_for(int64_t items)
{
    int64_t slots = 64;
    while (slots < 2 * items)
        slots *= 2;
    return slots;
}

#endif
