/* Histories while a block of events is applied: histories.py and recent.py. */

#ifndef FELREC_HISTORIES_H
#define FELREC_HISTORIES_H

#include "entries.h"
#include "events.h"
#include "sorting.h"

enum { NOTHING = -1 };

INLINE int64_t events_before(const Histories *of, int64_t owner) { return owner < of->owners ? of->count[owner] : 0; }

/* The weight of an event of a block. */
INLINE float weight_of(const Block *block, int64_t event) { return block->weights ? block->weights[event] : NAN; }

/* The rings and counts of all owners of a block after its events; returns how many owners. With `weights` the entries are
 * marked. If `previous` is given: of each event, the place of its owner's previous event in the block, or NOTHING, and how
 * many events its owner had. */
INLINE int64_t append_histories(const Histories *of, const int32_t *owners, const int32_t *others,
                                const float *weights, int64_t count,
                                Key *keys, Key *room, int64_t *previous, int64_t *taken, int32_t *rows, int32_t *rings,
                                int64_t *counts)
{
    const int64_t length = of->length;
    int64_t distinct = 0;
    for (int64_t at = 0; at < count; at++)
        keys[at] = (Key){(uint64_t)owners[at], at};
    sort_keys(keys, count, room);
    for (int64_t begin = 0, end; begin < count; begin = end, distinct++) {
        end = end_of_group(keys, begin, count, 0);
        const int64_t owner = (int64_t)keys[begin].key, before = events_before(of, owner);
        int32_t *ring = rings + distinct * length;
        if (owner < of->owners)
            memcpy(ring, of->ring + owner * length, length * sizeof(int32_t));
        else
            memset(ring, NOTHING, length * sizeof(int32_t));
        for (int64_t at = begin; at < end; at++) {
            const int64_t place = keys[at].place, nth = before + at - begin;
            ring[nth % length] = weights ? marked(others[place], weights[place]) : others[place];
            if (previous) {
                previous[place] = at > begin ? keys[at - 1].place : NOTHING;
                taken[place] = nth;
            }
        }
        rows[distinct] = (int32_t)owner;
        counts[distinct] = before + end - begin;
    }
    return distinct;
}

/* The newest counterparts in a ring of `count` events, oldest first; returns how many. */
INLINE int64_t unrolled(const int32_t *ring, int64_t count, int64_t length, int32_t *history)
{
    int64_t taken = 0;
    const int64_t most = count < length ? count : length;
    while (taken < most && ring[(count - taken - 1) % length] != NOTHING) /* an erasure may have left fewer */
        taken++;
    for (int64_t at = 0; at < taken; at++)
        history[at] = row_of(ring[(count - taken + at) % length]);
    return taken;
}

/* The user's newest items just before an event of a block, as marked entries, oldest first; returns how many. */
INLINE int64_t history_before(const State *state, const Block *block, int64_t event, const int64_t *previous,
                              int32_t *history)
{
    const Histories *users = &state->users;
    const int64_t user = block->users[event], count = events_before(users, user), length = users->length;
    int64_t at = length;
    for (int64_t before = previous[event]; before != NOTHING && at > 0; before = previous[before])
        history[--at] = marked(block->items[before], weight_of(block, before));
    for (int64_t nth = count; nth > 0 && nth > count - length && at > 0;) {
        const int32_t item = users->ring[user * length + --nth % length];
        if (item == NOTHING)
            break; /* erased */
        history[--at] = item;
    }
    memmove(history, history + at, (length - at) * sizeof(int32_t));
    return length - at;
}

#endif
