/* The pair network: an ensemble of perceptrons with two hidden layers, of which the mean is taken. A pair in each lane. */

#ifndef FELREC_NETWORK_H
#define FELREC_NETWORK_H

#include <string.h>

#include "lanes.h"
#include "tables.h"

enum { UNITS = LANES == 16 ? 16 : 8 }; /* that are computed together: their sums stay in registers */

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
        __asm__("" : "+r"(weights)); /* one address for all units, not one for each */
        for (int unit = 0; unit < count; unit++)
            y[unit] += weights[unit] * input;
    }
}

/* Which of UNITS vectors are positive in any lane, a bit each. */
INLINE uint32_t any_positive(const lanes *x)
{
    int_lanes bits = {0};
    for (int unit = 0; unit < UNITS; unit++)
        bits |= (x[unit] > 0) & (1 << unit);
    FOLD(bits, |=);
    return (uint32_t)(bits[0] | bits[1]);
}

/* The first hidden layer (hidden, LANES) of a member. Returns how many of its units are `alive`, in whatever lane: about
 * half of them are not for any of a few similar pairs. */
INLINE int64_t first_layer(const PairNetwork *network, int64_t member, const float (*x)[LANES], const int64_t *columns,
                           int64_t used, const float *bias, float (*y)[LANES], int64_t *alive)
{
    const int64_t hidden = network->hidden, all = network->members * hidden;
    const float *weights = network->first + member * hidden;
    lanes sums[UNITS];
    int64_t unit = 0, count = 0;
    for (; unit + UNITS <= hidden; unit += UNITS) {
        unit_sums(UNITS, x, columns, used, weights + unit, all, bias + unit, sums);
        const uint32_t any = any_positive(sums);
        for (int nth = 0; nth < UNITS; nth++) {
            *(lanes *)y[unit + nth] = positive(sums[nth]);
            alive[count] = unit + nth;
            count += any >> nth & 1;
        }
    }
    for (; unit < hidden; unit++) {
        unit_sums(1, x, columns, used, weights + unit, all, bias + unit, sums);
        *(lanes *)y[unit] = positive(sums[0]);
        alive[count++] = unit;
    }
    return count;
}

/* The last layers of a member, from its first hidden layer x (hidden, LANES). */
INLINE lanes last_layers(const PairNetwork *network, int64_t member, const float (*x)[LANES], const int64_t *alive,
                         int64_t count)
{
    const int64_t hidden = network->hidden;
    const float *weights = network->second + member * hidden * hidden, *last = network->last + member * hidden;
    const float *bias = network->second_bias + member * hidden;
    lanes sums[UNITS], gains = {0};
    int64_t unit = 0;
    for (; unit + UNITS <= hidden; unit += UNITS) {
        unit_sums(UNITS, x, alive, count, weights + unit, hidden, bias + unit, sums);
        for (int nth = 0; nth < UNITS; nth++)
            gains += positive(sums[nth]) * last[unit + nth];
    }
    for (; unit < hidden; unit++) {
        unit_sums(1, x, alive, count, weights + unit, hidden, bias + unit, sums);
        gains += positive(sums[0]) * last[unit];
    }
    return gains;
}

/* The gains of pairs from their features (FEATURES, LANES); `room` has space for (hidden, LANES) floats, and `alive` for
 * `hidden` + 1 numbers. */
INLINE lanes gains_of(const PairNetwork *network, const float (*x)[LANES], const int64_t *columns, int64_t used,
                      const float *first_bias, float (*room)[LANES], int64_t *alive)
{
    lanes gains = (lanes){0} + network->last_bias;
    for (int64_t member = 0; member < network->members; member++) {
        const float *bias = first_bias + member * network->hidden;
        const int64_t count = first_layer(network, member, x, columns, used, bias, room, alive);
        gains += last_layers(network, member, (const float(*)[LANES])room, alive, count);
    }
    return gains;
}

#endif
