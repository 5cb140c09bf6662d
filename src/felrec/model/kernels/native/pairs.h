/* Pairs of a user and an item that a signal has features for: what repetition.py, item_links.py and hit_rates.py
 * compute. */

#ifndef FELREC_PAIRS_H
#define FELREC_PAIRS_H

#include "bounds.h"
#include "buckets.h"
#include "lanes.h"
#include "sets.h"
#include "tables.h"

typedef struct { /* sums over the user's newest items, each discounted by its place */
    float cosine, confidence, count, places, newest;
} Link;

typedef struct {
    int32_t row, own; /* own: whether the user is known to have had it */
    float count, back, minutes;
    Link links[3]; /* of together, follows and ahead */
} Pair;

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

typedef struct { /* one query while its pairs are collected */
    const Tables *tables;
    const Questions *questions;
    int64_t query;
    Set *set;
    Pair *pairs;
    int64_t count;
    float user_events, newest; /* minutes since the user's newest event */
    float newest_events;       /* of the user's newest item, plus one */
} Collected;

INLINE int is_candidate(const Tables *tables, const Questions *questions, int64_t query, int32_t row);

/* Ask the memory for what is kept of an item: it arrives while further pairs are collected. */
INLINE void fetch(const Tables *tables, int64_t row)
{
    const Encoder *encoder = &tables->encoder;
    __builtin_prefetch(tables->items + row);
    for (int64_t at = 0; at < encoder->width; at += LANES)
        __builtin_prefetch(encoder->vectors + row * encoder->width + at);
}

/* The pair of an item; NULL for one that cannot be recommended. */
INLINE Pair *pair_of(Collected *all, int32_t row)
{
    int64_t slot = slot_of(all->set, row);
    if (all->set->rows[slot] == row)
        return all->set->numbers[slot] < 0 ? 0 : all->pairs + all->set->numbers[slot];
    all->set->rows[slot] = row;
    if (!is_candidate(all->tables, all->questions, all->query, row)) {
        all->set->numbers[slot] = -1;
        return 0;
    }
    all->set->numbers[slot] = (int32_t)all->count;
    Pair *pair = all->pairs + all->count++;
    *pair = (Pair){.row = row, .back = NEVER, .minutes = NEVER};
    fetch(all->tables, row);
    return pair;
}

INLINE void add_own(Collected *all, int32_t row, float count, float back, float minutes)
{
    all->newest = minutes < all->newest ? minutes : all->newest;
    Pair *pair = pair_of(all, row);
    if (!pair)
        return;
    pair->own = 1;
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
    const Counts *own = &all->tables->own;
    const Questions *asked = all->questions;
    const int64_t user = asked->users[all->query], begin = asked->pending_starts[all->query];
    const int64_t waiting = asked->pending_stops[all->query] - begin;
    const double now = asked->times[all->query];
    const Row had = row_of_counts(own, user);
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
        const float root = 1 / sqrtf(events);
        for (int64_t at = 0; at < linked.used; at++) {
            Pair *pair = linked.other[at] >= 0 ? pair_of(all, linked.other[at]) : 0;
            if (!pair)
                continue;
            Link *link = pair->links + signal;
            const float count = linked.count[at] * discount;
            link->cosine += count * root;
            link->confidence += count / events;
            link->count += count;
            link->places += discount;
            if (place == 1)
                link->newest = linked.count[at];
        }
    }
}

INLINE float hit_rate(const Tables *tables, const Counts *counts, int bucket)
{
    return counts->first_rate < 0 || bucket < 0 ? 0 : tables->rates[counts->first_rate + bucket];
}

INLINE void own_features(const Collected *all, const Pair *pair, float *x)
{
    const float is_own = pair->count > 0;
    x[OWN] = is_own;
    x[OWN + 1] = logf(1 + pair->count);
    x[OWN + 2] = is_own * logf(1 + pair->back);
    x[OWN + 3] = pair->count / all->user_events;
    x[OWN + 4] = is_own * (pair->back <= 1);
    x[OWN + 5] = is_own * logf(1 + pair->minutes) / 5;
    x[OWN + 6] = is_own * (pair->minutes == all->newest);
    const int bucket = own_bucket(pair->count, pair->back, pair->minutes == all->newest);
    x[RATES] = hit_rate(all->tables, &all->tables->own, is_own ? bucket : -1);
}

/* `strength` is the measure by which hit rates are counted. */
INLINE void link_features(const Collected *all, const Link *link, const Counts *counts, int own, float root,
                          int strength,
                          float *x, float *rate)
{
    x[0] = log_of(link->cosine * root);
    x[1] = log_of(link->confidence);
    x[3] = logf(1 + link->count);
    x[4] = link->places;
    if (link->newest > 0) {
        x[2] = log_of(link->newest / all->newest_events);
        x[5] = log_of(link->newest / sqrtf(all->newest_events) * root);
        x[6] = logf(1 + link->newest);
    }
    *rate = hit_rate(all->tables, counts, x[strength] > 0 ? link_bucket(x[strength], own) : -1);
}

/* Features (FEATURES) of a pair; x is zero before. Those that all pairs of a query share are part of its bias. */
INLINE void pair_features(const Collected *all, const Pair *pair, float cosine, float *x)
{
    const Tables *tables = all->tables;
    const Item *item = item_of(tables, pair->row);
    if (pair->own)
        own_features(all, pair, x);
    const Link *near = pair->links, *next = near + 1, *ahead = near + 2;
    float unrated; /* `ahead` has no hit rates */
    if (near->places > 0)
        link_features(all, near, &tables->near, pair->own, item->root_events, 0, x + NEAR, x + RATES + 1);
    if (next->places > 0)
        link_features(all, next, &tables->next, pair->own, item->root_events, 2, x + NEXT, x + RATES + 2);
    if (ahead->places > 0)
        link_features(all, ahead, &tables->ahead, pair->own, item->root_events, 1, x + AHEAD, &unrated);
    x[CONTEXT] = item->log_events;
    x[CONTEXT + 1] = item->score;
    x[CONTEXT + 2] = cosine;
}

#endif
