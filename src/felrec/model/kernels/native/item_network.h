/* What the item network says of an item: trend.py and item_scores.py. Each item is computed on its own, so that its score
 * does not depend on which others are asked for. */

#ifndef FELREC_ITEM_NETWORK_H
#define FELREC_ITEM_NETWORK_H

#include <string.h>

#include "lanes.h"
#include "moments.h"
#include "tables.h"

static const float BACKGROUND = 1e-6f; /* share of all events that an item without any is assumed to have */

enum { LOGARITHMS = 16 }; /* room for those among the features of an item, in whole lanes */

/* Features (ITEM_FEATURES) of an item. */
INLINE void item_features(const ItemNetwork *network, int64_t item, float log_events, float *x)
{
    const Trend *trend = &network->trend;
    memset(x, 0, ITEM_FEATURES * sizeof(float));
    x[LOG_COUNT] = log_events;
    if (!trend->log)
        return;
    const int known = item < trend->rows;
    const int64_t moment = trend->log[1], first = known ? trend->first[item] : 0, age = moment + 1 - first;
    const float passed = known && moment > trend->last[item] ? (float)(moment - trend->last[item]) : 0;
    float decay[LOGARITHMS] = {0}, mass[LOGARITHMS] = {0}, grown[LOGARITHMS];
    for (int horizon = 0; horizon < HORIZONS; horizon++) {
        decay[horizon] = -passed / HALF_LIVES[horizon] * 0.693147181f;
        mass[horizon] = known ? trend->mass[item * HORIZONS + horizon] : 0;
    }
    const float since = since_moment(trend, item);
    for (int at = 0; at < LOGARITHMS; at += LANES) {
        lanes *left = (lanes *)(mass + at);
        *left = *left * exponential(*(lanes *)(decay + at)) + since;
        *(lanes *)(grown + at) = *left * 10.0f + 1.0f;
    }
    float trusted = 0;
    for (int horizon = 0; horizon < HORIZONS; horizon++)
        trusted += mass[horizon] / total_count(trend, horizon) * network->horizons[horizon];
    grown[TRUSTED] = trusted / BACKGROUND + 1;
    grown[AGE] = first > 0 ? 1 + (float)(age > 1 ? age : 1) : 1;
    for (int at = 0; at < LOGARITHMS; at += LANES)
        *(lanes *)(grown + at) = logarithm(*(lanes *)(grown + at));
    for (int horizon = 0; horizon < HORIZONS; horizon++)
        x[DECAYED + horizon] = grown[horizon];
    x[TRUSTED] = grown[TRUSTED] / 2;
    x[AGE] = grown[AGE] / 5;
}

/* The score of an item by its features. */
INLINE float item_score(const ItemNetwork *network, const float *x)
{
    float score = network->last_bias;
    for (int64_t feature = 0; feature < ITEM_FEATURES; feature++)
        score += x[feature] * network->slopes[feature];
    lanes total = {0};
    for (int64_t begin = 0; begin < network->hidden; begin += 4 * LANES) { /* `hidden` is a multiple of it */
        lanes sum[4];
        for (int block = 0; block < 4; block++)
            sum[block] = *(const lanes *)(network->bias + begin + block * LANES);
        for (int64_t feature = 0; feature < ITEM_FEATURES; feature++) {
            const float *weights = network->first + feature * network->hidden + begin;
            for (int block = 0; block < 4; block++)
                sum[block] += x[feature] * *(const lanes *)(weights + block * LANES);
        }
        for (int block = 0; block < 4; block++)
            total += (lanes)((int_lanes)sum[block] & (sum[block] > 0)) *
                     *(const lanes *)(network->last + begin + block * LANES);
    }
    return score + sum_of(total);
}

#endif
