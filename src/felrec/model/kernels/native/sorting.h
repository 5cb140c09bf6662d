/* Groups of events: sorting by a key, and by time among equal keys. */

#ifndef FELREC_SORTING_H
#define FELREC_SORTING_H

#include <string.h>

#include "lanes.h"

typedef struct {
    uint64_t key;
    int64_t place; /* in the order before sorting */
} Key;

enum { RUN = 16 }; /* keys that are sorted by insertion */

INLINE void merge(const Key *a, int64_t count_a, const Key *b, int64_t count_b, Key *to)
{
    while (count_a && count_b) {
        const int from_b = b->key < a->key;
        *to++ = from_b ? *b : *a;
        b += from_b;
        count_b -= from_b;
        a += !from_b;
        count_a -= !from_b;
    }
    memcpy(to, count_a ? a : b, (count_a + count_b) * sizeof(Key));
}

/* Sort by key; equal keys stay in order. `room` has space for as many keys. */
INLINE void sort_keys(Key *keys, int64_t count, Key *room)
{
    for (int64_t begin = 0; begin < count; begin += RUN)
        for (int64_t at = begin + 1; at < count && at < begin + RUN; at++) {
            const Key moved = keys[at];
            int64_t to = at;
            for (; to > begin && keys[to - 1].key > moved.key; to--)
                keys[to] = keys[to - 1];
            keys[to] = moved;
        }
    Key *from = keys, *to = room;
    for (int64_t width = RUN; width < count; width *= 2) {
        for (int64_t begin = 0; begin < count; begin += 2 * width) {
            const int64_t middle = begin + width < count ? begin + width : count;
            const int64_t end = begin + 2 * width < count ? begin + 2 * width : count;
            merge(from + begin, middle - begin, from + middle, end - middle, to + begin);
        }
        Key *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != keys)
        memcpy(keys, from, count * sizeof(Key));
}

/* Where the keys that equal the one at `begin`, after a shift to the right, end. */
INLINE int64_t end_of_group(const Key *keys, int64_t begin, int64_t count, int shift)
{
    int64_t end = begin + 1;
    while (end < count && keys[end].key >> shift == keys[begin].key >> shift)
        end++;
    return end;
}

#endif
