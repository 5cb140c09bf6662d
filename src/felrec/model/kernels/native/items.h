/* What the scores of candidates are computed from, and where they are kept. Mirrored in item_tables.py. */

#ifndef FELREC_ITEMS_H
#define FELREC_ITEMS_H

#include "tables.h"

typedef struct { /* what is kept of each candidate, by column */
    ItemNetwork network;
    const int64_t *item_events; /* by row */
    int64_t item_owners;
    int64_t known;            /* rows that may have a column */
    const int64_t *column_of; /* (known) -1: not a candidate */
    float *events, *log_events, *scores;
} KeptItems;

#endif
