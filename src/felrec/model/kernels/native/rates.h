/* Pairs and hits of sampled events by bucket: hit_rates.py. */

#ifndef FELREC_RATES_H
#define FELREC_RATES_H

#include "buckets.h"
#include "sets.h"
#include "top_k.h"

enum { EVERY = 4 };
static const double RATES_HALF_LIFE = 10000; /* of the counts, in sampled events */

typedef struct { /* what decides the buckets of a pair */
    int32_t row;
    int own;
    int64_t slot; /* in the set */
    double count, cosine; /* sums of single-precision numbers in double precision, as numpy's */
    float back, minutes, from_newest;
} Met;

typedef struct { /* the pairs of one event */
    const State *state;
    Set set;
    Met *pairs;
    int64_t count;
    float newest; /* minutes since the user's newest event */
} MetPairs;

INLINE Met *met_pair(MetPairs *all, int32_t row)
{
    if (row >= all->state->items.owners)
        return 0;
    const int64_t slot = slot_of(&all->set, row);
    if (all->set.rows[slot] != row) {
        all->set.rows[slot] = row;
        all->set.numbers[slot] = (int32_t)all->count;
        all->pairs[all->count++] = (Met){.row = row, .slot = slot, .back = NEVER, .minutes = NEVER};
    }
    return all->pairs + all->set.numbers[slot];
}

INLINE void meet_own(MetPairs *all, int32_t row, float count, float back, double minutes)
{
    const float since = minutes > 0 ? (float)minutes : 0;
    Met *pair = met_pair(all, row);
    all->newest = since < all->newest ? since : all->newest;
    if (!pair)
        return;
    pair->own = 1;
    pair->count += count;
    pair->back = back < pair->back ? back : pair->back;
    pair->minutes = since < pair->minutes ? since : pair->minutes;
}

INLINE void meet_own_items(MetPairs *all, const Block *block, int64_t event, const int64_t *previous, int64_t taken)
{
    const Row own = row_of_counts(&all->state->own, block->users[event]);
    const double now = minute_of(block->times[event]);
    for (int64_t at = 0; at < own.used; at++)
        if (own.other[at] != NOTHING)
            meet_own(all, own.other[at], own.count[at], (float)(taken - own.nth[at]), now - own.minute[at]);
    int64_t back = 1;
    for (int64_t before = previous[event]; before != NOTHING; before = previous[before], back++)
        meet_own(all, block->items[before], 1, (float)back, now - minute_of(block->times[before]));
}

INLINE float events_and_one(const State *state, int64_t item) { return (float)events_before(&state->items, item) + 1; }

INLINE void meet_linked(MetPairs *all, const Counts *links, const int near, const int32_t *history, int64_t taken)
{
    for (int64_t place = 1; place <= links->reach && place <= taken; place++) {
        const int64_t mine = history[taken - place];
        const float root = sqrtf(events_and_one(all->state, mine));
        const Row linked = row_of_counts(links, mine);
        for (int64_t at = 0; at < linked.used; at++) {
            Met *pair = linked.other[at] != NOTHING ? met_pair(all, linked.other[at]) : 0;
            if (!pair)
                continue;
            if (near)
                pair->cosine += linked.count[at] / (float)place / root;
            else if (place == 1)
                pair->from_newest = linked.count[at];
        }
    }
}

/* Add the pairs and hits of one event to `hits` and `pairs` (cells). */
INLINE void add_pairs(MetPairs *all, const Block *block, int64_t event, const int64_t *previous, const int32_t *history,
                      int64_t taken, int64_t events, float *hits, float *pairs)
{
    const State *state = all->state;
    const float newest_events = events_and_one(state, taken ? history[taken - 1] : 0);
    all->count = 0;
    all->newest = NEVER;
    if (state->own.size)
        meet_own_items(all, block, event, previous, events);
    meet_linked(all, &state->near, 1, history, taken);
    meet_linked(all, &state->next, 0, history, taken);
    for (int64_t at = 0; at < all->count; at++) {
        const Met *pair = all->pairs + at;
        const float root = 1 / sqrtf(events_and_one(state, pair->row));
        const int64_t cells[3] = {
            pair->count > 0 ? state->own.first_rate + own_bucket((float)pair->count, pair->back,
                                                                 pair->minutes == all->newest) : NOTHING,
            pair->cosine > 0 ? state->near.first_rate +
                    link_bucket((float)log(pair->cosine * root / 1e-3 + 1), pair->own) : NOTHING,
            pair->from_newest > 0 ? state->next.first_rate +
                    link_bucket(log_of(pair->from_newest / newest_events), pair->own) : NOTHING,
        };
        for (int signal = 0; signal < 3; signal++)
            if (cells[signal] != NOTHING) {
                pairs[cells[signal]]++;
                hits[cells[signal]] += pair->row == block->items[event];
            }
    }
    for (int64_t at = 0; at < all->count; at++) /* the next event begins with an empty set */
        all->set.rows[all->pairs[at].slot] = NO_ITEM;
}

/* The most pairs that an event of a block can have. */
INLINE int64_t most_met(const State *state, int64_t events)
{
    return events + state->own.size + state->near.reach * state->near.size + state->next.reach * state->next.size;
}

/* Old counts (2, cells) fade, and new ones are added. */
INLINE void change_rates(const State *state, int64_t sampled, Change *to)
{
    const float left = (float)pow(0.5, (double)sampled / RATES_HALF_LIFE);
    for (int64_t at = 0; at < 2 * state->cells; at++)
        to->rate_counts[at] += state->rates[at] * left;
}

#endif
