/* Items as they are now, and how high their scores can get later.
 *
 * At a new moment the scores of all items change, but only a few are asked for. So an item is scored when a query
 * needs it, and keeps its score until the next moment. Chunks of items are skipped by bounds that hold at later moments
 * too. They rest on this: without an event, counts only fall and the age only rises, and a network of ReLUs has a
 * steepest slope in each of its inputs.
 */

#ifndef FELREC_BOUNDS_H
#define FELREC_BOUNDS_H

#include "item_network.h"
#include "lanes.h"
#include "tables.h"

static const float SLACK = 1e-5f; /* relative: a bound must also hold for scores that were rounded on the way */
/* Events after a chunk was renewed until which each of its bounds holds: none, 64, twice as many each time, and for ever;
 * and a little more than ln(1 + events). */
static const float UNTIL[PERIODS] = {0,    64,    128,   256,   512,    1024,   2048,   4096,
                                     8192, 16384, 32768, 65536, 131072, 262144, 524288, 1e12f};
static const float LOG_UNTIL[PERIODS] = {0,     4.18f, 4.87f, 5.56f, 6.25f, 6.94f, 7.63f, 8.33f,
                                         9.02f, 9.71f, 10.4f, 11.1f, 11.8f, 12.5f, 13.2f, 27.7f};

INLINE lanes lesser(lanes a, lanes b)
{
    const int_lanes less = a < b;
    return (lanes)(((int_lanes)a & less) | ((int_lanes)b & ~less));
}

/* Number of events of an item so far. */
INLINE int64_t events_of(const Tables *tables, int64_t row)
{
    return row < tables->item_owners ? tables->item_events[row] : 0;
}

/* Score an item as of now, with its features (ITEM_FEATURES). Two threads may do so at once: they write the same bits, and
 * the stamp last. */
SHARED void renew_item(const Tables *tables, int32_t row, float *x)
{
    const float events = (float)events_of(tables, row), log_events = log1pf(events);
    Item *item = tables->items + row;
    item_features(&tables->item_network, row, log_events, x);
    item->log_events = log_events;
    item->root_events = 1 / sqrtf(events + 1);
    item->trust = tables->scale / (1 + expf(-(tables->certain + tables->per_log_event * log_events)));
    item->reach = tables->lengths ? item->trust * tables->lengths[row] : 0;
    item->score = item_score(&tables->item_network, x);
    __atomic_store_n(&item->stamp, (int32_t)tables->moment, __ATOMIC_RELEASE);
}

/* An item as it is now. */
INLINE const Item *item_of(const Tables *tables, int32_t row)
{
    const Item *item = tables->items + row;
    if (__atomic_load_n(&item->stamp, __ATOMIC_ACQUIRE) != (int32_t)tables->moment) {
        float x[ITEM_FEATURES];
        renew_item(tables, row, x);
    }
    return item;
}

/* How much the score of an item can rise until some periods end, from `first` on, if it has no event: falling counts or a rising age can
 * raise it by at most these slopes. A count of x events falls by half in a half-life, ln(1 + 10 x) by at most ln 2. */
INLINE lanes most_rise(const Tables *tables, const float *x, int first)
{
    const lanes until = *(const lanes *)(UNTIL + first);
    const ItemNetwork *network = &tables->item_network;
    const float young = expf(-5 * x[AGE]); /* 1 / (1 + age) */
    lanes rise = lesser(until * young, *(const lanes *)(LOG_UNTIL + first)) * (network->rise_of_age / 5);
    for (int64_t at = 0; at < HORIZONS; at++) {
        const lanes all = (lanes){0} + x[DECAYED + at];
        rise += lesser(until * (0.6931472f / HALF_LIVES[at]), all) * network->falls[DECAYED + at];
    }
    lanes trusted = (lanes){0} + network->falls[TRUSTED] * x[TRUSTED]; /* may fall at once, if horizons are trusted anew */
    return rise + lesser(trusted, until * 1e6f);
}

INLINE lanes higher(lanes a, lanes b) { return -lesser(-a, -b); }

/* Renew an item, and raise the bounds of its chunk so that they hold for it until it has an event. */
INLINE void raise_bounds(const Tables *tables, int32_t row, Bounds *bounds)
{
    Item *item = tables->items + row;
    if (!events_of(tables, row)) {
        item->score = -INFINITY;
        return;
    }
    float x[ITEM_FEATURES];
    renew_item(tables, row, x);
    for (int at = 0; at < PERIODS; at += LANES) {
        const lanes rise = most_rise(tables, x, at);
        const lanes upper = item->score + rise + SLACK * (1 + fabsf(item->score) + item->reach + rise);
        lanes *alone = (lanes *)(bounds->alone + at), *with_cosine = (lanes *)(bounds->with_cosine + at);
        *alone = higher(upper, *alone);
        *with_cosine = higher(upper + item->reach, *with_cosine);
    }
}

/* The bounds of a chunk now, after what the profile of the log has changed since it was renewed. */
INLINE Top top_of(const Tables *tables, const Chunk *chunk)
{
    const float events = (float)(tables->moment - chunk->moment);
    int period = 0;
    while (events > UNTIL[period])
        period++;
    const float drift = (1 + SLACK) * (float)(tables->drift - chunk->drift);
    return (Top){chunk->bounds.alone[period] + drift, chunk->bounds.with_cosine[period] + drift};
}

/* Score all items of a chunk and renew its bounds. As with items, threads write the same bits, and the moment last. */
SHARED void renew_chunk(const Tables *tables, int64_t nth)
{
    const int64_t begin = nth * CHUNK, end = begin + CHUNK < tables->catalogue ? begin + CHUNK : tables->catalogue;
    Chunk *chunk = tables->chunks + nth;
    Bounds bounds;
    for (int at = 0; at < PERIODS; at++)
        bounds.alone[at] = bounds.with_cosine[at] = -INFINITY;
    for (int64_t row = begin; row < end; row++)
        raise_bounds(tables, (int32_t)row, &bounds);
    chunk->bounds = bounds;
    chunk->drift = tables->drift;
    tables->tops[nth] = (Top){bounds.alone[0], bounds.with_cosine[0]};
    __atomic_store_n(&chunk->moment, tables->moment, __ATOMIC_RELEASE);
}

INLINE int is_renewed(const Tables *tables, int64_t nth)
{
    return __atomic_load_n(&tables->chunks[nth].moment, __ATOMIC_ACQUIRE) == tables->moment;
}

/* No item of a chunk has a higher score for a user without pair features whose vector is this long, at most 1. */
INLINE float bound_of(const Top *top, float length)
{
    const float bound = top->alone + length * (top->with_cosine - top->alone);
    return bound > -INFINITY ? bound : -INFINITY; /* not NaN where there are no items */
}

#endif
