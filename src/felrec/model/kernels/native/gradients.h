/* The pair network with its gradients, a tile of pairs at a time. */

#ifndef FELREC_GRADIENTS_H
#define FELREC_GRADIENTS_H

#include <string.h>

#include "network.h"

enum { TILE = 32 }; /* pairs whose activations stay in the processor's first cache */

/* y (rows, outputs) += x (inputs, rows), transposed, times w (inputs, outputs); rows and blocks are constants. */
INLINE void transposed_tile(const int rows, const int blocks, const float *x, int64_t x_step, int64_t inputs,
                            const float *w, int64_t w_step, float *y, int64_t y_step)
{
    lanes sum[ROWS][4];
    for (int row = 0; row < rows; row++)
        for (int block = 0; block < blocks; block++)
            sum[row][block] = *(const lanes *)(y + row * y_step + block * LANES);
    for (int64_t input = 0; input < inputs; input++)
        for (int row = 0; row < rows; row++)
            for (int block = 0; block < blocks; block++)
                sum[row][block] += x[input * x_step + row] * *(const lanes *)(w + input * w_step + block * LANES);
    for (int row = 0; row < rows; row++)
        for (int block = 0; block < blocks; block++)
            *(lanes *)(y + row * y_step + block * LANES) = sum[row][block];
}

INLINE void transposed_strip(const int rows, const float *x, int64_t x_step, int64_t inputs, const float *w,
                             int64_t w_step, int64_t outputs, float *y, int64_t y_step)
{
    int64_t at = 0;
    for (; at + 4 * LANES <= outputs; at += 4 * LANES)
        transposed_tile(rows, 4, x, x_step, inputs, w + at, w_step, y + at, y_step);
    for (; at + 2 * LANES <= outputs; at += 2 * LANES)
        transposed_tile(rows, 2, x, x_step, inputs, w + at, w_step, y + at, y_step);
    for (; at + LANES <= outputs; at += LANES)
        transposed_tile(rows, 1, x, x_step, inputs, w + at, w_step, y + at, y_step);
    for (; at < outputs; at++)
        for (int row = 0; row < rows; row++)
            for (int64_t input = 0; input < inputs; input++)
                y[row * y_step + at] += x[input * x_step + row] * w[input * w_step + at];
}

/* y (rows, outputs) += x (inputs, rows), transposed, times w (inputs, outputs) */
ANY_PROCESSOR static void add_transposed_product(int64_t rows, const float *x, int64_t x_step, int64_t inputs,
                                                 const float *w, int64_t w_step, int64_t outputs, float *y,
                                                 int64_t y_step)
{
    int64_t row = 0;
    for (; row + ROWS <= rows; row += ROWS)
        transposed_strip(ROWS, x + row, x_step, inputs, w, w_step, outputs, y + row * y_step, y_step);
    for (; row < rows; row++)
        transposed_strip(1, x + row, x_step, inputs, w, w_step, outputs, y + row * y_step, y_step);
}

typedef struct { /* the activations of a tile; `all` is members times hidden */
    int64_t columns, column_of[FEATURES]; /* features that any of its pairs has */
    float used[TILE * FEATURES];          /* (TILE, columns) */
    float *one, *two, *back;              /* (TILE, all) each: hidden layers, and gradients on their way back */
} Tile;

typedef struct { /* of the pair network; the layout of its weights, but `second` has a transposed copy */
    float *first, *first_bias, *second, *second_bias, *last, *last_bias;
} PairGradients;

/* Pick the features that most pairs lack. */
INLINE void pick_columns(const float *x, int64_t rows, Tile *tile)
{
    tile->columns = 0;
    for (int64_t feature = 0; feature < FEATURES; feature++) {
        int any = 0;
        for (int64_t row = 0; row < rows; row++)
            any |= x[row * FEATURES + feature] != 0;
        if (any)
            tile->column_of[tile->columns++] = feature;
    }
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < tile->columns; column++)
            tile->used[row * FEATURES + column] = x[row * FEATURES + tile->column_of[column]];
}

/* The end of a run of neighbouring features. */
INLINE int64_t run_end(const Tile *tile, int64_t begin)
{
    int64_t end = begin + 1;
    while (end < tile->columns && tile->column_of[end] == tile->column_of[end - 1] + 1)
        end++;
    return end;
}

/* Both hidden layers of up to TILE pairs with features x (rows, FEATURES). */
INLINE void activate(const PairNetwork *network, const float *x, int64_t rows, const float *first_bias, Tile *tile)
{
    const int64_t hidden = network->hidden, all = network->members * hidden;
    pick_columns(x, rows, tile);
    for (int64_t row = 0; row < rows; row++) {
        memcpy(tile->one + row * all, first_bias, all * sizeof(float));
        memcpy(tile->two + row * all, network->second_bias, all * sizeof(float));
    }
    for (int64_t begin = 0, end; begin < tile->columns; begin = end) {
        end = run_end(tile, begin);
        add_product(rows, tile->used + begin, FEATURES, end - begin, network->first + tile->column_of[begin] * all,
                    all, all, tile->one, all);
    }
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
    for (int64_t begin = 0, end; begin < tile->columns; begin = end) {
        end = run_end(tile, begin);
        add_transposed_product(end - begin, tile->used + begin, FEATURES, rows, tile->two, all, all,
                               to->first + tile->column_of[begin] * all, all);
    }
}

#endif
