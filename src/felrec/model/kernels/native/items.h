/* What the item kernels read and write. Mirrored in item_tables.py. */

#ifndef FELREC_ITEMS_H
#define FELREC_ITEMS_H

#include "events.h"

typedef struct { /* an ensemble of networks with one hidden layer, and the counts that their features are made of */
    Trend trend;
    const float *horizons;     /* (HORIZONS) trust in each half-life; NULL: no feature is made of it */
    int64_t features, hidden;  /* hidden: of all members; 0: the model has no such network */
    const float *first, *bias; /* (features, hidden), (hidden) */
    const float *last;         /* (hidden), divided by the number of members */
    const float *slopes;       /* (features) */
    float last_bias;
} ItemNetwork;

typedef struct { /* what is kept of each candidate, by column */
    const int64_t *item_events; /* by row */
    int64_t item_owners;
    int64_t count, known;     /* columns, and rows that may have one */
    const int64_t *column_of; /* (known) -1: not a candidate */
    const int32_t *rows;
    float *events, *log_events, *scores;
    const float *lengths; /* of the vectors, by row; NULL: the model has no vectors */
    int64_t lengths_count;
    float scale, certain, per_log_event; /* the trust in a cosine */
    Item *items;                         /* this and the bounds as in tables.h; NULL: not needed yet */
    float *upper, *tops;
} KeptItems;

#endif
