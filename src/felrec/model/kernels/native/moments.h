/* The moments as of which counts decay: trend_counts.py. */

#ifndef FELREC_MOMENTS_H
#define FELREC_MOMENTS_H

#include "lanes.h"
#include "tables.h"

enum { PACE = 64 }; /* events between two moments */
static const float HALF_LIVES[HORIZONS] = {30, 100, 300, 1000, 3000, 10000, 100000};

/* How many events of an item there were since the last moment. */
INLINE float since_moment(const Trend *trend, int64_t item)
{
    const int64_t moment = trend->log[1], events = trend->log[0] - moment; /* which have the first rows */
    int32_t since = 0;
    for (int64_t row = 1; row < PACE && row <= events; row++)
        since += trend->log[2 * row] > moment && trend->log[2 * row + 1] == item;
    return (float)since;
}

/* The decayed count of all items. */
INLINE float total_count(const Trend *trend, int horizon)
{
    const float total = HALF_LIVES[horizon] / logf(2), most = trend->log[1] > 1 ? (float)trend->log[1] : 1;
    return total < 1 ? 1 : total > most ? most : total;
}

#endif
