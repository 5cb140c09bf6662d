/* The pair network with its gradients, a tile of pairs at a time. */

#ifndef FELREC_GRADIENTS_H
#define FELREC_GRADIENTS_H

#include <string.h>

#include "network.h"
#include "transposed.h"

enum { TILE = 32 }; /* pairs whose activations stay in the processor's first cache */

typedef struct { /* the activations of a tile; `all` is members times hidden */
    const float *x;                            /* (TILE, FEATURES) */
    int64_t runs, begin[FEATURES], end[FEATURES]; /* neighbouring features that any of its pairs has: most lack most */
    float *one, *two, *back;                   /* (TILE, all) each: hidden layers, and gradients on their way back */
} Tile;

typedef struct { /* of the pair network; the layout of its weights, but `second` has a transposed copy */
    float *first, *first_bias, *second, *second_bias, *last, *last_bias;
} PairGradients;

INLINE void find_runs(const float *x, int64_t rows, Tile *tile)
{
    int32_t any[FEATURES] = {0};
    for (int64_t row = 0; row < rows; row++)
        for (int64_t feature = 0; feature < FEATURES; feature++)
            any[feature] |= x[row * FEATURES + feature] != 0;
    tile->x = x;
    tile->runs = 0;
    for (int64_t feature = 0; feature < FEATURES; feature++) {
        if (any[feature] && (!feature || !any[feature - 1]))
            tile->begin[tile->runs++] = feature;
        if (any[feature])
            tile->end[tile->runs - 1] = feature + 1;
    }
}

/* Both hidden layers of up to TILE pairs with features x (rows, FEATURES). */
INLINE void activate(const PairNetwork *network, const float *x, int64_t rows, const float *first_bias, Tile *tile)
{
    const int64_t hidden = network->hidden, all = network->members * hidden;
    find_runs(x, rows, tile);
    for (int64_t row = 0; row < rows; row++) {
        memcpy(tile->one + row * all, first_bias, all * sizeof(float));
        memcpy(tile->two + row * all, network->second_bias, all * sizeof(float));
    }
    for (int64_t run = 0; run < tile->runs; run++)
        add_product(rows, x + tile->begin[run], FEATURES, tile->end[run] - tile->begin[run],
                    network->first + tile->begin[run] * all, all, all, tile->one, all);
    relu(tile->one, rows * all);
    for (int64_t member = 0; member < network->members; member++)
        add_product(rows, tile->one + member * hidden, all, hidden, network->second + member * hidden * hidden, hidden,
                    hidden, tile->two + member * hidden, all);
    relu(tile->two, rows * all);
}

/* Add what a tile contributes to all gradients; `gains` (rows, members) are the gradients of its outputs. `transposed`
 * is the second layer as (outputs, inputs). */
INLINE void add_gradients(const PairNetwork *network, const float *transposed, int64_t rows, const float *gains,
                          Tile *tile, PairGradients *to)
{
    const int64_t hidden = network->hidden, members = network->members, all = members * hidden;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t member = 0; member < members; member++) {
            const float gain = gains[row * members + member];
            const float *two = tile->two + row * all + member * hidden, *last = network->last + member * hidden;
            float *back = tile->back + row * all + member * hidden, *of_last = to->last + member * hidden;
            float *of_bias = to->second_bias + member * hidden;
            to->last_bias[member] += gain;
            for (int64_t at = 0; at < hidden; at++) {
                of_last[at] += gain * two[at];
                back[at] = two[at] > 0 ? gain * last[at] : 0;
                of_bias[at] += back[at];
            }
        }
    for (int64_t member = 0; member < members; member++) {
        const int64_t begin = member * hidden;
        add_transposed_product(hidden, tile->one + begin, all, rows, tile->back + begin, all, hidden,
                               to->second + begin * hidden, hidden);
        for (int64_t row = 0; row < rows; row++) /* `two` is no longer needed */
            memset(tile->two + row * all + begin, 0, hidden * sizeof(float));
        add_product(rows, tile->back + begin, all, hidden, transposed + begin * hidden, hidden, hidden,
                    tile->two + begin, all);
    }
    for (int64_t row = 0; row < rows; row++)
        for (int64_t at = 0; at < all; at++) {
            float *back = tile->two + row * all + at;
            *back = tile->one[row * all + at] > 0 ? *back : 0;
            to->first_bias[at] += *back;
        }
    for (int64_t run = 0; run < tile->runs; run++)
        add_transposed_product(tile->end[run] - tile->begin[run], tile->x + tile->begin[run], FEATURES, rows, tile->two,
                               all, all, to->first + tile->begin[run] * all, all);
}

#endif
