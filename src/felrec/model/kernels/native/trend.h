/* Decayed counts of items, and the profile of the log that follows from them: trend_counts.py and profile.py. */

#ifndef FELREC_TREND_H
#define FELREC_TREND_H

#include "moments.h"
#include "top_k.h"

static const float LEAST = 1e-3f;                 /* of an event: what an item without events is assumed to have */
static const double PROFILE_HALF_LIFE = 5000;     /* of the running means, in events */

typedef enum { APPEARS, DECAYS, AGAINST } Effect; /* has an event; it becomes part of the mass; it lowers the mass */

typedef struct { /* of one event of the log, or of all that speak against an item */
    int64_t number;
    Effect effect;
    float worth;
} Entry;

INLINE float decayed(int64_t events, int horizon)
{
    return exp2f(-(float)(events > 0 ? events : 0) / HALF_LIVES[horizon]);
}

INLINE int64_t moment_after(const Trend *trend, int64_t events)
{
    const int64_t after = trend->log[0] + events, moment = after / PACE * PACE;
    return after < PACE ? after : moment > trend->log[1] ? moment : trend->log[1];
}

/* The row of one item, from its entries in time order. */
INLINE void change_item(const Trend *trend, int64_t item, int64_t moment, const Key *keys, int64_t count,
                        const Entry *entries, float *mass, int64_t *last, int64_t *first)
{
    const int known = item < trend->rows;
    int64_t earliest = INT64_MAX;
    *last = known ? trend->last[item] : 0;
    *first = known ? trend->first[item] : 0;
    for (int horizon = 0; horizon < HORIZONS; horizon++) {
        mass[horizon] = known ? trend->mass[item * HORIZONS + horizon] : 0;
        if (moment > trend->log[1] && mass[horizon] != 0)
            mass[horizon] *= decayed(moment - *last, horizon);
    }
    if (moment > trend->log[1])
        *last = moment;
    for (int64_t at = 0; at < count; at++) {
        const Entry *entry = entries + keys[at].place;
        for (int horizon = 0; entry->effect == DECAYS && horizon < HORIZONS; horizon++)
            mass[horizon] += decayed(moment - entry->number, horizon) * entry->worth;
        for (int horizon = 0; entry->effect == AGAINST && horizon < HORIZONS; horizon++) { /* the last entry */
            const float left = mass[horizon] * decayed(moment - *last, horizon) - entry->worth;
            mass[horizon] = left > 0 ? left : 0;
        }
        if (entry->effect == AGAINST)
            *last = moment;
        if (entry->effect == APPEARS && entry->number < earliest)
            earliest = entry->number;
    }
    *first = *first > 0 ? *first : earliest;
}

/* The counts after a block, with what its events are worth. There is room for twice the events, for the items that some
 * spoke against, and PACE more. */
INLINE void change_trend(const Trend *trend, const Block *block, const float *worth, Key *keys, Key *room,
                         Entry *entries, Change *to)
{
    const int64_t events = trend->log[0], old = trend->log[1], moment = moment_after(trend, block->count);
    int64_t count = 0, recorded = 0;
    for (int64_t row = 1; row < PACE; row++) {
        const int64_t number = trend->log[2 * row], entry = trend->log[2 * row + 1];
        recorded += number > old;
        if (number > old && entry != NOTHING && moment > old) {
            keys[count] = (Key){(uint64_t)(uint32_t)entry, count};
            entries[count++] = (Entry){number, DECAYS, logged_worth(entry)};
        }
    }
    recorded = moment > old ? 0 : recorded;
    to->log = 1;
    to->log_rows[0] = 0;
    to->log_values[0] = events + block->count;
    to->log_values[1] = moment;
    for (int64_t at = 0; at < block->count; at++) {
        const int64_t number = events + 1 + at;
        if (number > moment) {
            to->log_rows[to->log] = (int32_t)(recorded + to->log);
            to->log_values[2 * to->log] = number;
            to->log_values[2 * to->log++ + 1] = worth[at] > 0 ? logged(block->items[at], worth[at]) : NOTHING;
        } else if (worth[at] > 0) {
            keys[count] = (Key){(uint64_t)block->items[at], count};
            entries[count++] = (Entry){number, DECAYS, worth[at]};
        }
        keys[count] = (Key){(uint64_t)block->items[at], count};
        entries[count++] = (Entry){number, APPEARS, 0};
    }
    for (int64_t at = 0; at < block->against; at++) {
        const int64_t item = block->against_items[at];
        if (item >= trend->rows || !trend->first[item])
            continue; /* an item without events has no counts */
        keys[count] = (Key){(uint64_t)item, count};
        entries[count++] = (Entry){0, AGAINST, block->against_weights[at]};
    }
    sort_keys(keys, count, room);
    to->trend = 0;
    for (int64_t begin = 0, end; begin < count; begin = end) {
        end = end_of_group(keys, begin, count, 0);
        const int64_t at = to->trend++;
        to->trend_rows[at] = (int32_t)keys[begin].key;
        change_item(trend, (int64_t)keys[begin].key, moment, keys + begin, end - begin, entries,
                    to->mass + at * HORIZONS, to->last + at, to->first + at);
    }
}

/* The decayed counts (HORIZONS) of an item as of now. */
INLINE void decayed_counts(const Trend *trend, int64_t item, float *mass)
{
    const int64_t moment = trend->log[1];
    const float since = since_moment(trend, item);
    for (int horizon = 0; horizon < HORIZONS; horizon++) {
        const float stored = item < trend->rows ? trend->mass[item * HORIZONS + horizon] : 0;
        mass[horizon] = since + (stored != 0 ? stored * decayed(moment - trend->last[item], horizon) : 0);
    }
}

/* Add what one event says about the log. */
INLINE void add_facts(const State *state, int32_t item, int64_t taken, int repeats, int follows, double *sums)
{
    const Trend *trend = &state->trend;
    float mass[HORIZONS];
    sums[0] += repeats;
    sums[1] += events_before(&state->items, item) > 0;
    sums[2] += taken > 0;
    sums[3] += log1p((double)taken) / 3;
    sums[4] += follows;
    sums[5] += log1p((double)trend->items) / 10;
    decayed_counts(trend, item, mass);
    for (int horizon = 0; horizon < HORIZONS; horizon++) {
        const float share = (mass[horizon] + LEAST) / total_count(trend, horizon);
        sums[MEANS + horizon] += share < 1 ? logf(share) : 0;
    }
}

/* The running means after a block, of whose events some count, and at a new moment also what is shown of them. */
INLINE void change_profile(const State *state, int64_t events, int64_t counted, const double *sums, Change *to)
{
    const float step = state->trend.log[0] ? (float)(1 - pow(0.5, (double)counted / PROFILE_HALF_LIFE)) : 1;
    to->profile = moment_after(&state->trend, events) > state->trend.log[1] ? 2 : 1;
    for (int at = 0; at < PROFILE; at++) {
        const float running = state->profile[at], fresh = counted ? (float)(sums[at] / (double)counted) : running;
        to->profile_means[at] = to->profile_means[PROFILE + at] = running + step * (fresh - running);
    }
}

#endif
