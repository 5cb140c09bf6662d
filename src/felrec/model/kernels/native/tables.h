/* What the kernels read: the tables of the signals, the weights, and what is kept of each item. Mirrored in
 * tables.py. */

#ifndef FELREC_TABLES_H
#define FELREC_TABLES_H

#include <stdint.h>

enum { CHUNK = 256, PERIODS = 16 }; /* items with a common upper bound; periods for which it has one (bounds.h) */

/* Features of a pair, in the order of the pair network's weights; those of the log are part of its first bias. */
enum { OWN = 0, NEAR = 9, NEXT = 16, RATES = 23, CONTEXT = 26, AHEAD = 29, MATCH = 36, FEATURES = 37 };

typedef struct { /* the newest counterparts of each owner, as rings */
    const int32_t *ring;
    const int64_t *count;
    int64_t owners, length;
} Histories;

typedef struct { /* the most frequent counterparts of each owner, as in packed_rows.py; `row_of_counts` reads one */
    int32_t *other;
    float *count;
    int32_t *nth, *minute; /* only of own items */
    int64_t *place;        /* where the slots of each owner begin */
    int32_t *used;         /* slots of each owner up to the last one that is not free */
    int64_t *end;          /* of all slots */
    int64_t owners, size;  /* size: the most slots of an owner; 0: the model does not have this signal */
    int64_t reach;               /* newest items of a user whose links are followed */
    int64_t first_rate;          /* index of its first hit rate; -1: none */
} Counts;

typedef struct { /* the slots of one owner */
    const int32_t *other;
    const float *count;
    const int32_t *nth, *minute;
    int64_t used;
} Row;

/* An owner that was never written has no slots. */
static inline Row row_of_counts(const Counts *of, int64_t owner)
{
    if (owner >= of->owners || !of->used[owner])
        return (Row){0};
    const int64_t at = of->place[owner];
    const int marked = of->nth != 0;
    return (Row){of->other + at, of->count + at, marked ? of->nth + at : 0, marked ? of->minute + at : 0, of->used[owner]};
}

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

typedef struct { /* the network that reads a sequence; all weights in one array, in the order of sequence.h */
    int64_t width, size, heads, inner; /* of vectors, and inside; width 0: the model does not have this signal */
    const float *weights;
    const float *vectors; /* (rows, width) of items */
    int64_t rows;
} Sequence;

enum { HORIZONS = 7 }; /* half-lives */

typedef struct { /* decayed counts of each item */
    const float *mass; /* (rows, HORIZONS) */
    const int64_t *last, *first;
    int64_t rows;
    const int64_t *log; /* (PACE, 2) as in trend_counts.py; NULL: the model does not have this signal */
    int64_t items;      /* number of items with events */
} Trend;

/* Features of an item, as in trend.py. */
enum { LOG_COUNT = 0, DECAYED = 1, TRUSTED = DECAYED + HORIZONS, AGE, ITEM_FEATURES };

typedef struct { /* an ensemble of networks with one hidden layer, and the counts that their features are made of */
    Trend trend;
    const float *horizons;     /* (HORIZONS) trust in each half-life */
    int64_t hidden;            /* of all members, and zeros up to a multiple of 64; 0: the model has no such network */
    const float *first, *bias; /* (ITEM_FEATURES, hidden); the features of the log are part of the bias */
    const float *last;         /* (hidden), divided by the number of members */
    const float *slopes;       /* (ITEM_FEATURES) added to the networks */
    const float *falls;        /* (ITEM_FEATURES) at most how much a score rises when a feature falls by one */
    float last_bias, rise_of_age; /* at most how much a score rises when the age does by one */
} ItemNetwork;

typedef struct {       /* an item as of the moment of its stamp */
    float score;       /* what the item network says; -inf: it has no events */
    float trust;       /* factor of the cosine */
    float reach;       /* the most that the cosine can add */
    float log_events;
    float root_events; /* 1 / sqrt(events + 1) */
    int32_t stamp;     /* -1: never computed */
} Item;

typedef struct { /* of the items of a chunk, for longer and longer periods after it was renewed */
    float alone[PERIODS];       /* without the cosine */
    float with_cosine[PERIODS]; /* with all that it can add */
} Bounds;

typedef struct {    /* CHUNK items */
    int64_t moment; /* when it was renewed */
    double drift;   /* `drift` of the tables then */
    Bounds bounds;
} Chunk;

typedef struct {
    float alone, with_cosine;
} Top;

typedef struct {
    Histories users;
    const int64_t *item_events;
    int64_t item_owners;
    Counts own, near, next, ahead;
    const float *rates;
    PairNetwork network;
    Encoder encoder;
    Sequence sequence;
    int64_t catalogue;
    Item *items;
    int64_t moment; /* the last one of the trend */
    double drift;   /* sum over all moments: at most how much a score rose because the profile of the log changed */
    ItemNetwork item_network;
    float scale, certain, per_log_event; /* the trust in a cosine */
    const float *lengths; /* (catalogue) of vectors; NULL: the model has none */
    Chunk *chunks;
    Top *tops;            /* (chunks) their bounds now */
    const int32_t *order; /* (chunks) roughly from the highest to the lowest of `tops` */
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
