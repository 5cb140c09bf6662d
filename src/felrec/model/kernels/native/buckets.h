/* Buckets of similar pairs of a user and an item, whose hit rates are counted: repetition.py and item_links.py. */

#ifndef FELREC_BUCKETS_H
#define FELREC_BUCKETS_H

#include "lanes.h"

enum { TIMES = 5, BACK = 8, STRENGTHS = 12 };
static const float NEVER = 1e7f, FAINT = 1e-3f, PER_UNIT = 1.6f;

INLINE int clipped(float value, int most) { return value <= 0 ? 0 : value >= (float)most ? most : (int)value; }

INLINE float log_of(float similarity) { return logf(similarity / FAINT + 1); }

/* By how often, how many events ago, and whether in the last sitting. */
INLINE int own_bucket(float count, float back, int newest)
{
    const float times = count > 1 ? rintf(log2f(count)) : 0, ago = back > 1 ? log2f(back) : 0;
    return (clipped(times, TIMES - 1) * BACK + clipped(ago, BACK - 1)) * 2 + newest;
}

/* By the strength of a link, and whether it leads to an item that the user had. */
INLINE int link_bucket(float strength, int own) { return clipped(strength * PER_UNIT, STRENGTHS - 1) * 2 + own; }

#endif
