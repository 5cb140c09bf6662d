/* Counts of the most frequent counterparts of owners after further meetings: top_k_counts.py. */

#ifndef FELREC_TOP_K_H
#define FELREC_TOP_K_H

#include "histories.h"

static const double OWN_FADE = 0.99, LINK_FADE = 0.9995; /* of repetition.py and item_links.py */
static const uint64_t NO_MEETING = 0xFFFFFFFFu;          /* an owner that gets a row without a meeting */

typedef struct { /* rows that are being written */
    int32_t *rows, *other;
    float *count;
    int32_t *nth, *minute; /* NULL: without */
} TopK;

typedef struct { /* values of the meetings, by place */
    const int64_t *nth;
    const double *times;
} Marks;

typedef struct { /* a counterpart that an owner did not have */
    int32_t other;
    int64_t times, latest;
} Fresh;

INLINE uint64_t meeting(int64_t owner, int64_t other) { return (uint64_t)owner << 32 | (uint64_t)other; }

/* Whole minutes; rounds as numpy's floor division does. */
INLINE double minute_of(double time)
{
    const double rest = fmod(time, 60), minutes = (time - rest) / 60 - (rest < 0), whole = floor(minutes);
    return minutes - whole > 0.5 ? whole + 1 : whole;
}

INLINE void mark(const TopK *to, int64_t slot, const Marks *marks, int64_t latest)
{
    if (!to->nth)
        return;
    to->nth[slot] = (int32_t)marks->nth[latest];
    to->minute[slot] = (int32_t)minute_of(marks->times[latest]);
}

/* The slot of a counterpart in a row, or NOTHING. */
INLINE int64_t slot_in(const int32_t *others, int64_t size, int32_t other)
{
    int64_t found = NOTHING;
    for (int64_t slot = 0; slot < size; slot++)
        found = others[slot] == other ? slot : found;
    return found;
}

/* New counterparts replace the weakest, the most frequent first; those for which there is no slot are dropped. */
INLINE void replace_weakest(const TopK *to, int64_t base, int64_t size, Fresh *fresh, int64_t count, const Marks *marks,
                            float *strength)
{
    for (int64_t at = 1; at < count; at++) { /* stable */
        const Fresh moved = fresh[at];
        int64_t before = at;
        for (; before && fresh[before - 1].times < moved.times; before--)
            fresh[before] = fresh[before - 1];
        fresh[before] = moved;
    }
    for (int64_t slot = 0; slot < size; slot++)
        strength[slot] = to->other[base + slot] == NOTHING ? -1 : to->count[base + slot];
    for (int64_t at = 0; at < count && at < size; at++) {
        int64_t weakest = 0;
        for (int64_t slot = 1; slot < size; slot++)
            weakest = strength[slot] < strength[weakest] ? slot : weakest;
        strength[weakest] = INFINITY;
        to->other[base + weakest] = fresh[at].other;
        to->count[base + weakest] = (float)fresh[at].times;
        mark(to, base + weakest, marks, fresh[at].latest);
    }
}

/* One owner's row, from its sorted meetings. */
INLINE void count_owner(const Counts *of, double fade, const Key *keys, int64_t meetings, const Marks *marks,
                        const TopK *to, int64_t base, Fresh *fresh, float *strength)
{
    const int64_t size = of->size;
    const Row before = row_of_counts(of, (int64_t)(keys->key >> 32));
    while (meetings && (keys[meetings - 1].key & NO_MEETING) == NO_MEETING)
        meetings--;
    const float left = (float)pow(fade, (double)meetings);
    for (int64_t slot = 0; slot < before.used; slot++) {
        to->other[base + slot] = before.other[slot];
        to->count[base + slot] = before.count[slot] * left;
    }
    for (int64_t slot = before.used; slot < size; slot++) {
        to->other[base + slot] = NOTHING;
        to->count[base + slot] = 0;
    }
    for (int64_t slot = 0; to->nth && slot < size; slot++) {
        to->nth[base + slot] = slot < before.used ? before.nth[slot] : 0;
        to->minute[base + slot] = slot < before.used ? before.minute[slot] : 0;
    }
    int64_t unknown = 0;
    for (int64_t begin = 0, end; begin < meetings; begin = end) {
        end = end_of_group(keys, begin, meetings, 0);
        const int32_t other = (int32_t)(keys[begin].key & NO_MEETING);
        const int64_t slot = slot_in(to->other + base, size, other);
        if (slot == NOTHING) {
            fresh[unknown++] = (Fresh){other, end - begin, keys[end - 1].place};
            continue;
        }
        to->count[base + slot] += (float)(end - begin);
        mark(to, base + slot, marks, keys[end - 1].place); /* if it is replaced now, this is overwritten */
    }
    if (unknown)
        replace_weakest(to, base, size, fresh, unknown, marks, strength);
}

/* The rows of all owners of meetings; returns how many. `fresh` has room for all meetings, `strength` for a row. */
INLINE int64_t count_meetings(const Counts *of, double fade, Key *keys, int64_t count, Key *room, const Marks *marks,
                              const TopK *to, Fresh *fresh, float *strength)
{
    int64_t owners = 0;
    sort_keys(keys, count, room);
    for (int64_t begin = 0, end; begin < count; begin = end, owners++) {
        end = end_of_group(keys, begin, count, 32);
        count_owner(of, fade, keys + begin, end - begin, marks, to, owners * of->size, fresh, strength);
        if (to->rows)
            to->rows[owners] = (int32_t)(keys[begin].key >> 32);
    }
    return owners;
}

#endif
