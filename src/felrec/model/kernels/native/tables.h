/* What the kernels read: the tables of the signals, the weights, and what is kept of each item. Mirrored in
 * tables.py. */

#ifndef FELREC_TABLES_H
#define FELREC_TABLES_H

#include <stdint.h>

enum { CHUNK = 256 }; /* items with a common upper bound */

/* Features of a pair, in the order of the pair network's weights; those of the log are part of its first bias. */
enum { OWN = 0, NEAR = 9, NEXT = 16, RATES = 23, CONTEXT = 26, FEATURES = 29 };

typedef struct { /* the newest counterparts of each owner, as rings */
    const int32_t *ring;
    const int64_t *count;
    int64_t owners, length;
} Histories;

typedef struct { /* the most frequent counterparts of each owner */
    const int32_t *other;
    const float *count;
    const int32_t *nth, *minute; /* only of own items */
    int64_t owners, size;        /* size 0: the model does not have this signal */
    int64_t reach;               /* newest items of a user whose links are followed */
    int64_t first_rate;          /* index of its first hit rate; -1: none */
} Counts;

typedef struct { /* an ensemble of networks with two hidden layers */
    int64_t members, hidden;
    const float *first, *first_bias;   /* (FEATURES, members * hidden) */
    const float *second, *second_bias; /* members times (hidden, hidden) */
    const float *last;                 /* (members * hidden), divided by the number of members */
    float last_bias;
} PairNetwork;

typedef struct { /* the encoder of a history; all weights in one array, in the order of encoder.h */
    int64_t width, heads, feed_forward, layers; /* width 0: the model has no vectors */
    const float *weights;
    const float *vectors; /* (rows, width) of the counterparts: of items in the history of a user */
    int64_t rows, side;   /* side 0: vectors of users, 1: of items; a row that was never written depends on it */
    float softness; /* added to the squared length of a vector */
} Encoder;

typedef struct {
    float score;       /* what the item network says */
    float trust;       /* factor of the cosine */
    float log_events;
    float root_events; /* 1 / sqrt(events + 1) */
} Item;

typedef struct {
    Histories users;
    const int64_t *item_events;
    int64_t item_owners;
    Counts own, near, next;
    const float *rates;
    PairNetwork network;
    Encoder encoder;
    int64_t catalogue;
    const Item *items;
    const float *upper;    /* (catalogue) no score of a user without pair features is higher; -inf: never recommended */
    const float *tops;     /* (chunks) the highest `upper` of each chunk */
    const int32_t *order;  /* (chunks) roughly from the highest to the lowest of `tops` */
} Tables;

typedef struct { /* queries, ragged lists as starts and stops */
    int64_t count;
    const int32_t *users;
    const double *times;
    const int32_t *pending;
    const double *pending_times; /* NULL: the time of the query */
    const int64_t *pending_starts, *pending_stops;
    const int64_t *k;
    const int32_t *leave_out; /* ascending within each query */
    const int64_t *leave_out_starts, *leave_out_stops;
    const int32_t *hidden; /* ascending, of all queries */
    int64_t hidden_count;
    const int32_t *candidates; /* ascending within each query */
    const int64_t *candidate_starts, *candidate_stops; /* start -1: the whole catalogue */
} Questions;

#endif
