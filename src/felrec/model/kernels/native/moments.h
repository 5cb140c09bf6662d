/* The moments as of which counts decay: trend_counts.py. */

#ifndef FELREC_MOMENTS_H
#define FELREC_MOMENTS_H

#include <string.h>

#include "lanes.h"
#include "tables.h"

enum { PACE = 64 }; /* events between two moments */
static const float HALF_LIVES[HORIZONS] = {30, 100, 300, 1000, 3000, 10000, 100000};

/* The log has an item and what its event is worth in one number, which is the item itself if that is 1. */
INLINE int64_t logged(int32_t item, float worth)
{
    const float one = 1;
    uint32_t bits, plain;
    memcpy(&bits, &worth, sizeof(bits));
    memcpy(&plain, &one, sizeof(plain));
    return (int64_t)((uint64_t)(bits ^ plain) << 32 | (uint32_t)item);
}

INLINE float logged_worth(int64_t entry)
{
    const float one = 1;
    float worth;
    uint32_t bits;
    memcpy(&bits, &one, sizeof(bits));
    bits ^= (uint32_t)((uint64_t)entry >> 32);
    memcpy(&worth, &bits, sizeof(worth));
    return worth;
}

/* What the events of an item since the last moment are worth. */
INLINE float since_moment(const Trend *trend, int64_t item)
{
    const int64_t moment = trend->log[1], events = trend->log[0] - moment; /* which have the first rows */
    const int64_t rows = events < PACE - 1 ? events : PACE - 1;
    int32_t plain = 0, all = 0;
    for (int64_t row = 1; row <= rows; row++) {
        plain += trend->log[2 * row] > moment && trend->log[2 * row + 1] == item;
        all += trend->log[2 * row] > moment && (int32_t)trend->log[2 * row + 1] == (int32_t)item;
    }
    if (all == plain)
        return (float)plain;
    double since = 0;
    for (int64_t row = 1; row <= rows; row++)
        if (trend->log[2 * row] > moment && (int32_t)trend->log[2 * row + 1] == (int32_t)item)
            since += logged_worth(trend->log[2 * row + 1]);
    return (float)since;
}

/* The decayed count of all items. */
INLINE float total_count(const Trend *trend, int horizon)
{
    const float total = HALF_LIVES[horizon] / logf(2), most = trend->log[1] > 1 ? (float)trend->log[1] : 1;
    return total < 1 ? 1 : total > most ? most : total;
}

#endif
