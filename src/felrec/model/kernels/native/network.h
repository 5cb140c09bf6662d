/* The pair network: an ensemble of perceptrons with two hidden layers, of which the mean is taken. A pair in each lane. */

#ifndef FELREC_NETWORK_H
#define FELREC_NETWORK_H

#include <string.h>

#include "lanes.h"
#include "tables.h"

enum { UNITS = 8 }; /* that are computed together: their sums stay in registers */

INLINE void relu(float *x, int64_t count)
{
    for (int64_t at = 0; at < count; at++)
        x[at] = x[at] > 0 ? x[at] : 0;
}

INLINE lanes positive(lanes x) { return (lanes)((int_lanes)x & (x > 0)); }

/* y (count, LANES) = bias + w (inputs, ...) times those of x (..., LANES) that are listed; count is a constant. */
INLINE void unit_sums(const int count, const float (*x)[LANES], const int64_t *listed, int64_t inputs, const float *w,
                      int64_t w_step, const float *bias, lanes *y)
{
    for (int unit = 0; unit < count; unit++)
        y[unit] = (lanes){0} + bias[unit];
    for (int64_t at = 0; at < inputs; at++) {
        const lanes input = *(const lanes *)x[listed[at]];
        const float *weights = w + listed[at] * w_step;
        for (int unit = 0; unit < count; unit++)
            y[unit] += weights[unit] * input;
    }
}

INLINE int any_positive(const float *x)
{
    uint64_t words[LANES / 2], any = 0;
    memcpy(words, x, sizeof(words));
    for (int at = 0; at < LANES / 2; at++)
        any |= words[at];
    return any != 0;
}

/* The first hidden layer (all, LANES) of pairs with features x, of which `columns` are used. */
INLINE void first_layer(const PairNetwork *network, const float (*x)[LANES], const int64_t *columns, int64_t used,
                        const float *bias, float (*y)[LANES])
{
    const int64_t all = network->members * network->hidden;
    lanes sums[UNITS];
    int64_t unit = 0;
    for (; unit + UNITS <= all; unit += UNITS) {
        unit_sums(UNITS, x, columns, used, network->first + unit, all, bias + unit, sums);
        for (int nth = 0; nth < UNITS; nth++)
            *(lanes *)y[unit + nth] = positive(sums[nth]);
    }
    for (; unit < all; unit++) {
        unit_sums(1, x, columns, used, network->first + unit, all, bias + unit, sums);
        *(lanes *)y[unit] = positive(sums[0]);
    }
}

/* What a member makes of its part of the first layer (hidden, LANES). */
INLINE lanes member_gains(const PairNetwork *network, int64_t member, const float (*x)[LANES], int64_t *alive)
{
    const int64_t hidden = network->hidden;
    const float *weights = network->second + member * hidden * hidden, *last = network->last + member * hidden;
    const float *bias = network->second_bias + member * hidden;
    lanes sums[UNITS], gains = {0};
    int64_t inputs = 0, unit = 0;
    for (int64_t at = 0; at < hidden; at++) { /* about half of the units are zero for all of similar pairs */
        alive[inputs] = at;
        inputs += any_positive(x[at]);
    }
    for (; unit + UNITS <= hidden; unit += UNITS) {
        unit_sums(UNITS, x, alive, inputs, weights + unit, hidden, bias + unit, sums);
        for (int nth = 0; nth < UNITS; nth++)
            gains += positive(sums[nth]) * last[unit + nth];
    }
    for (; unit < hidden; unit++) {
        unit_sums(1, x, alive, inputs, weights + unit, hidden, bias + unit, sums);
        gains += positive(sums[0]) * last[unit];
    }
    return gains;
}

/* The gains of pairs from their features (FEATURES, LANES); `room` has space for (members * hidden, LANES) floats, and
 * `alive` for `hidden` + 1 numbers. */
INLINE lanes gains_of(const PairNetwork *network, const float (*x)[LANES], const int64_t *columns, int64_t used,
                      const float *first_bias, float *room, int64_t *alive)
{
    float(*one)[LANES] = (float(*)[LANES])room;
    first_layer(network, x, columns, used, first_bias, one);
    lanes gains = (lanes){0} + network->last_bias;
    for (int64_t member = 0; member < network->members; member++)
        gains += member_gains(network, member, (const float(*)[LANES])one + member * network->hidden, alive);
    return gains;
}

#endif
