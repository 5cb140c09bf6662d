/* What the event kernels read and write: the state of a FELRec-S, a block of events, and the rows that it changes.
 * Mirrored in event_tables.py. */

#ifndef FELREC_EVENTS_H
#define FELREC_EVENTS_H

#include "tables.h"

enum { MEANS = 6, PROFILE = MEANS + HORIZONS };

typedef struct {
    Histories users, items;
    Trend trend;
    Counts own, near, next, ahead;
    const float *profile; /* (2, PROFILE) running means, and those that are shown; NULL: not in the model */
    const float *rates;   /* (2, cells) hits, and all pairs; NULL: not in the model */
    int64_t cells;
    Encoder of_users, of_items;
    float seed_share; /* how much of its seed an item keeps */
    float *user_lengths, *item_lengths; /* lengths of the vectors */
    Sequence sequence;
    const float *masses; /* (rows, 2) of the vectors of the sequence: their lengths before */
    const float *spread, *whitening; /* (2, width / 2, width / 2) of what was added to vectors */
} State;

typedef struct { /* in time order */
    int64_t count;
    const int32_t *users, *items;
    const double *times;
    const float *weights; /* 0: only context; NaN: none; NULL: no event has one */
    int64_t against;      /* items that events spoke against */
    const int32_t *against_items; /* distinct, ascending */
    const float *against_weights; /* above 0, summed */
} Block;

typedef struct { /* new values of some rows, by table; rows ascend */
    int64_t users, items, trend, log, near, next, ahead, profile, rates, sequence, whitening; /* numbers of rows */
    int32_t *user_rows, *user_ring;
    int64_t *user_count;
    int32_t *item_rows, *item_ring;
    int64_t *item_count;
    int32_t *trend_rows;
    float *mass;
    int64_t *last, *first;
    int32_t *log_rows;
    int64_t *log_values;
    int32_t *own_other; /* of the same users as above */
    float *own_count;
    int32_t *own_nth, *own_minute;
    int32_t *near_rows, *near_other;
    float *near_count;
    int32_t *next_rows, *next_other;
    float *next_count;
    int32_t *ahead_rows, *ahead_other;
    float *ahead_count;
    float *profile_means;
    float *rate_counts;
    float *user_vectors, *item_vectors;
    int32_t *sequence_rows;
    float *sequence_vectors, *sequence_masses, *sequence_spread, *sequence_whitening;
} Change;

#endif
