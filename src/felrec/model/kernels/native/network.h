/* The pair network: an ensemble of perceptrons with two hidden layers, of which the mean is taken. */

#ifndef FELREC_NETWORK_H
#define FELREC_NETWORK_H

#include <string.h>

#include "lanes.h"
#include "tables.h"

INLINE void relu(float *x, int64_t count)
{
    for (int64_t at = 0; at < count; at++)
        x[at] = x[at] > 0 ? x[at] : 0;
}

/* The gains of `rows` pairs from their features (rows, FEATURES); `room` has space for 2 * ROWS * members * hidden
 * floats. */
INLINE void gains_of(const PairNetwork *network, const int rows, const float *x, const float *first_bias,
                     float *room, float *gains)
{
    const int64_t hidden = network->hidden, all = network->members * hidden;
    float *one = room, *two = room + ROWS * all;
    float used[ROWS * FEATURES];
    int64_t columns = 0, column_of[FEATURES];
    for (int64_t feature = 0; feature < FEATURES; feature++) { /* most pairs lack the features of most signals */
        int any = 0;
        for (int row = 0; row < rows; row++)
            any |= x[row * FEATURES + feature] != 0;
        if (any)
            column_of[columns++] = feature;
    }
    for (int row = 0; row < rows; row++) {
        memcpy(one + row * all, first_bias, all * sizeof(float));
        memcpy(two + row * all, network->second_bias, all * sizeof(float));
        for (int64_t column = 0; column < columns; column++)
            used[row * FEATURES + column] = x[row * FEATURES + column_of[column]];
    }
    for (int64_t begin = 0; begin < columns;) { /* runs of neighbouring features */
        int64_t end = begin + 1;
        while (end < columns && column_of[end] == column_of[end - 1] + 1)
            end++;
        add_product(rows, used + begin, FEATURES, end - begin, network->first + column_of[begin] * all, all, all,
                    one, all);
        begin = end;
    }
    relu(one, rows * all);
    for (int64_t member = 0; member < network->members; member++)
        add_product(rows, one + member * hidden, all, hidden, network->second + member * hidden * hidden, hidden,
                    hidden, two + member * hidden, all);
    relu(two, rows * all);
    for (int row = 0; row < rows; row++)
        gains[row] = dot(two + row * all, network->last, all) + network->last_bias;
}

#endif
