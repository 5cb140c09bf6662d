/* Products with a transposed matrix, which gradients of weights are. */

#ifndef FELREC_TRANSPOSED_H
#define FELREC_TRANSPOSED_H

#include "lanes.h"

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
    for (; LANES == 16 && at + 4 * LANES <= outputs; at += 4 * LANES) /* others have fewer registers */
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
SHARED void add_transposed_product(int64_t rows, const float *x, int64_t x_step, int64_t inputs, const float *w,
                                   int64_t w_step, int64_t outputs, float *y, int64_t y_step)
{
    int64_t row = 0;
    for (; row + ROWS <= rows; row += ROWS)
        transposed_strip(ROWS, x + row, x_step, inputs, w, w_step, outputs, y + row * y_step, y_step);
    for (; row < rows; row++)
        transposed_strip(1, x + row, x_step, inputs, w, w_step, outputs, y + row * y_step, y_step);
}

#endif
