/* Pairs of a user and an item that a signal has features for: what repetition.py and item_links.py find. */

#ifndef FELREC_PAIRS_H
#define FELREC_PAIRS_H

#include <string.h>

#include "bounds.h"
#include "buckets.h"
#include "lanes.h"
#include "sets.h"
#include "tables.h"

typedef float four __attribute__((vector_size(16)));

enum { COSINE, CONFIDENCE, COUNT, PLACES }; /* sums over the user's newest items, each discounted by its place */

typedef struct {
    four links[3];              /* of together, follows and ahead */
    float newest[3];            /* the same of the newest item alone: how often */
    float count, back, minutes; /* of an item that the user is known to have had */
    int32_t row, slot, kind;    /* slot: in the set */
} Pair;

/* What a pair has features of; the first two have a bit for each of `Pair.links`. */
enum { FROM_NEWEST = 1, LINKED = 8, HAD = 64, KINDS = 128 };

/* Whether rows[start:stop], which ascend, have this one. */
INLINE int listed(const int32_t *rows, int64_t start, int64_t stop, int32_t row)
{
    int64_t end = stop;
    while (start < end) {
        const int64_t middle = start + (end - start) / 2;
        if (rows[middle] < row)
            start = middle + 1;
        else
            end = middle;
    }
    return start < stop && rows[start] == row;
}

INLINE int is_candidate(const Tables *tables, const Questions *questions, int64_t query, int32_t row)
{
    if (row >= tables->catalogue || !events_of(tables, row))
        return 0;
    const int64_t start = questions->candidate_starts[query];
    return start < 0 || listed(questions->candidates, start, questions->candidate_stops[query], row);
}

typedef struct { /* one query while its pairs are collected */
    const Tables *tables;
    const Questions *questions;
    int64_t query;
    Set *set;
    Pair *pairs;
    int64_t count;
    float user_events, newest; /* minutes since the user's newest event */
    float newest_events;       /* of the user's newest item, plus one */
    const float *wanted;       /* what the sequence says that the user wants */
} Collected;

/* Ask the memory for what is kept of an item: it arrives while further pairs are collected. */
INLINE void fetch(const Tables *tables, int64_t row)
{
    const Encoder *encoder = &tables->encoder;
    __builtin_prefetch(tables->items + row);
    __builtin_prefetch(tables->item_events + row);
    for (int64_t at = 0; at < encoder->width; at += LANES)
        __builtin_prefetch(encoder->vectors + row * encoder->width + at);
    const Sequence *sequence = &tables->sequence;
    for (int64_t at = 0; at < sequence->width; at += LANES)
        __builtin_prefetch(sequence->vectors + row * sequence->width + at);
}

/* Ask the memory for the links of the newest of `taken` items. */
INLINE void fetch_links(const Counts *links, const int32_t *history, int64_t taken)
{
    for (int64_t place = 1; place <= links->reach && place <= taken; place++) {
        const Row linked = row_of_counts(links, history[taken - place]);
        for (int64_t at = 0; at < linked.used; at += LANES) {
            __builtin_prefetch(linked.other + at);
            __builtin_prefetch(linked.count + at);
        }
    }
}

enum { FIRST_SLOTS = 2048 }; /* a set begins small, so that it stays in the processor's first cache */

INLINE void clear_set(Set *set, int64_t slots)
{
    set->mask = slots - 1;
    memset(set->rows, NO_ITEM, slots * sizeof(int32_t));
}

/* Twice as many slots; there is memory for two of each possible pair. */
INLINE void grow_set(Collected *all)
{
    clear_set(all->set, 2 * (all->set->mask + 1));
    for (int64_t at = 0; at < all->count; at++) {
        const int64_t slot = slot_of(all->set, all->pairs[at].row);
        all->set->rows[slot] = all->pairs[at].row;
        all->set->numbers[slot] = (int32_t)at;
        all->pairs[at].slot = (int32_t)slot;
    }
}

/* The pair of an item, which may be one that cannot be recommended. */
INLINE Pair *pair_of(Collected *all, int32_t row)
{
    int64_t slot = slot_of(all->set, row);
    if (all->set->rows[slot] == row)
        return all->pairs + all->set->numbers[slot];
    if (2 * (all->count + 1) > all->set->mask + 1) {
        grow_set(all);
        slot = slot_of(all->set, row);
    }
    all->set->rows[slot] = row;
    all->set->numbers[slot] = (int32_t)all->count;
    Pair *pair = all->pairs + all->count++;
    *pair = (Pair){.row = row, .slot = (int32_t)slot, .back = NEVER, .minutes = NEVER};
    fetch(all->tables, row);
    return pair;
}

INLINE void add_own(Collected *all, int32_t row, float count, float back, float minutes)
{
    all->newest = minutes < all->newest ? minutes : all->newest;
    Pair *pair = pair_of(all, row);
    pair->kind |= HAD;
    pair->count += count;
    pair->back = back < pair->back ? back : pair->back;
    pair->minutes = minutes < pair->minutes ? minutes : pair->minutes;
}

INLINE float minutes_since(double now, double minute)
{
    double since = floor(now / 60) - minute;
    return since > 0 ? (float)since : 0;
}

INLINE void collect_own(Collected *all, int64_t taken)
{
    const Questions *asked = all->questions;
    const int64_t user = asked->users[all->query], begin = asked->pending_starts[all->query];
    const int64_t waiting = asked->pending_stops[all->query] - begin;
    const double now = asked->times[all->query];
    const Row had = row_of_counts(&all->tables->own, user);
    for (int64_t at = 0; at < had.used; at++)
        if (had.other[at] >= 0)
            add_own(all, had.other[at], had.count[at], (float)(taken - had.nth[at]), minutes_since(now, had.minute[at]));
    for (int64_t at = 0; at < waiting; at++) {
        double minute = asked->pending_times ? floor(asked->pending_times[begin + at] / 60) : INFINITY;
        add_own(all, asked->pending[begin + at], 1, (float)(waiting - at), minutes_since(now, minute));
    }
}

/* Follow the links of the newest of `taken` items; `signal` is the place of theirs in `Pair.links`. */
INLINE void collect_links(Collected *all, const Counts *links, const int signal, const int32_t *history, int64_t taken)
{
    for (int64_t place = 1; place <= links->reach && place <= taken; place++) {
        const int64_t mine = history[taken - place];
        const Row linked = row_of_counts(links, mine);
        const float discount = 1 / (float)place, events = 1 + (float)events_of(all->tables, mine);
        const four each = {discount / sqrtf(events), discount / events, discount, 0}, once = {0, 0, 0, discount};
        const int32_t kind = (place == 1 ? LINKED | FROM_NEWEST : LINKED) << signal;
        for (int64_t at = 0; at < linked.used; at++) {
            if (linked.other[at] < 0)
                continue;
            Pair *pair = pair_of(all, linked.other[at]);
            pair->links[signal] += linked.count[at] * each + once;
            pair->kind |= kind;
            if (place == 1)
                pair->newest[signal] = linked.count[at];
        }
    }
}

/* The pairs that can be recommended, those of a kind together: their numbers in `order` and their rows in `rows`. Returns
 * how many they are. From now on the numbers of the set are places in that order. */
INLINE int64_t group_pairs(const Collected *all, int32_t *order, int32_t *rows)
{
    int64_t starts[KINDS + 1] = {0};
    for (int64_t at = 0; at < all->count; at++) {
        Pair *pair = all->pairs + at;
        if (!is_candidate(all->tables, all->questions, all->query, pair->row))
            pair->kind = -1;
        starts[pair->kind + 1]++;
    }
    starts[0] = 0;
    for (int kind = 1; kind <= KINDS; kind++)
        starts[kind] += starts[kind - 1];
    for (int64_t at = 0; at < all->count; at++) {
        const Pair *pair = all->pairs + at;
        const int64_t place = pair->kind < 0 ? -1 : starts[pair->kind]++;
        all->set->numbers[pair->slot] = (int32_t)place;
        if (place < 0)
            continue;
        order[place] = (int32_t)at;
        rows[place] = pair->row;
    }
    return starts[KINDS];
}

#endif
