/* Products of small matrices, in vectors as wide as those of the processor that this is compiled for. */

#ifndef FELREC_LANES_H
#define FELREC_LANES_H

#include <math.h>
#include <stdint.h>

/* Floats of a vector. Wider ones than the processor has would live in memory, which is many times slower. */
#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif

#define ROWS 4 /* of a product that are computed together, so that a weight is loaded once for all of them */
#define INLINE static inline __attribute__((always_inline))
#define SHARED static __attribute__((unused)) /* not every file that includes a header needs all of it */

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t int_lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

#ifdef __clang__
#define SHUFFLED(x, ...) __builtin_shufflevector(x, x, __VA_ARGS__)
#else
#define SHUFFLED(x, ...) __builtin_shuffle(x, (int_lanes){__VA_ARGS__})
#endif

/* Combine x with itself by an operator such as +=, until its first two lanes have what all lanes had. */
#if LANES == 16
#define FOLD(x, operator)                                                                  \
    x operator SHUFFLED(x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);          \
    x operator SHUFFLED(x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);          \
    x operator SHUFFLED(x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)
#elif LANES == 8
#define FOLD(x, operator)                            \
    x operator SHUFFLED(x, 4, 5, 6, 7, 0, 1, 2, 3);  \
    x operator SHUFFLED(x, 2, 3, 0, 1, 6, 7, 4, 5)
#else
#define FOLD(x, operator) x operator SHUFFLED(x, 2, 3, 0, 1)
#endif

/* y (rows, LANES * blocks) += x (rows, inputs) w (inputs, ...); rows and blocks are constants, so that sums stay in
 * registers. */
INLINE void product_tile(const int rows, const int blocks, const float *x, int64_t x_step, int64_t inputs,
                         const float *w, int64_t w_step, float *y, int64_t y_step)
{
    lanes sum[ROWS][2];
    for (int row = 0; row < rows; row++)
        for (int block = 0; block < blocks; block++)
            sum[row][block] = *(const lanes *)(y + row * y_step + block * LANES);
    for (int64_t input = 0; input < inputs; input++) {
        const float *weights = w + input * w_step;
        for (int row = 0; row < rows; row++)
            for (int block = 0; block < blocks; block++)
                sum[row][block] += x[row * x_step + input] * *(const lanes *)(weights + block * LANES);
    }
    for (int row = 0; row < rows; row++)
        for (int block = 0; block < blocks; block++)
            *(lanes *)(y + row * y_step + block * LANES) = sum[row][block];
}

INLINE void product_strip(const int rows, const float *x, int64_t x_step, int64_t inputs, const float *w,
                          int64_t w_step, int64_t outputs, float *y, int64_t y_step)
{
    int64_t at = 0;
    for (; at + 2 * LANES <= outputs; at += 2 * LANES)
        product_tile(rows, 2, x, x_step, inputs, w + at, w_step, y + at, y_step);
    for (; at + LANES <= outputs; at += LANES)
        product_tile(rows, 1, x, x_step, inputs, w + at, w_step, y + at, y_step);
    for (; at < outputs; at++)
        for (int row = 0; row < rows; row++)
            for (int64_t input = 0; input < inputs; input++)
                y[row * y_step + at] += x[row * x_step + input] * w[input * w_step + at];
}

/* y (rows, outputs) += x (rows, inputs) w (inputs, outputs) */
SHARED void add_product(int64_t rows, const float *x, int64_t x_step, int64_t inputs, const float *w, int64_t w_step,
                        int64_t outputs, float *y, int64_t y_step)
{
    int64_t row = 0;
    for (; row + ROWS <= rows; row += ROWS)
        product_strip(ROWS, x + row * x_step, x_step, inputs, w, w_step, outputs, y + row * y_step, y_step);
    for (; row < rows; row++)
        product_strip(1, x + row * x_step, x_step, inputs, w, w_step, outputs, y + row * y_step, y_step);
}

INLINE float sum_of(lanes x)
{
    FOLD(x, +=);
    return x[0] + x[1];
}

INLINE float dot(const float *a, const float *b, int64_t size)
{
    lanes sum = {0};
    int64_t at = 0;
    for (; at + LANES <= size; at += LANES)
        sum += *(const lanes *)(a + at) * *(const lanes *)(b + at);
    float total = sum_of(sum);
    for (; at < size; at++)
        total += a[at] * b[at];
    return total;
}

/* e to the power of numbers that are not positive, to a few units in the last place. */
INLINE lanes exponential(lanes x)
{
    const int_lanes tiny = x < -87.0f; /* below, the result is that of -87, near enough to zero */
    const lanes least = (lanes){0} - 87.0f;
    x = (lanes)(((int_lanes)x & ~tiny) | ((int_lanes)least & tiny));
    lanes turns = x * 1.44269504f - 0.5f; /* truncation rounds towards zero */
    int_lanes whole = __builtin_convertvector(turns, int_lanes);
    lanes power = __builtin_convertvector(whole, lanes);
    lanes rest = (x - power * 0.693359375f) + power * 2.12194440e-4f;
    lanes sum = rest * 1.9875691500e-4f + 1.3981999507e-3f;
    sum = sum * rest + 8.3334519073e-3f;
    sum = sum * rest + 4.1665795894e-2f;
    sum = sum * rest + 1.6666665459e-1f;
    sum = sum * rest + 5.0000001201e-1f;
    sum = sum * rest * rest + rest + 1.0f;
    whole = (whole + 127) << 23;
    return sum * (lanes)whole;
}

/* The natural logarithm of positive numbers, to a few units in the last place. */
INLINE lanes logarithm(lanes x)
{
    const int_lanes bits = (int_lanes)x;
    lanes part = (lanes)((bits & 0x007fffff) | 0x3f000000); /* from a half to one */
    const int_lanes low = part < 0.707106781f;
    const lanes power = __builtin_convertvector((bits >> 23) - 126 + low, lanes); /* a true comparison is -1 */
    part += (lanes)((int_lanes)part & low) - 1.0f;
    const lanes square = part * part;
    lanes sum = part * 7.0376836292e-2f - 1.1514610310e-1f;
    sum = sum * part + 1.1676998740e-1f;
    sum = sum * part - 1.2420140846e-1f;
    sum = sum * part + 1.4249322787e-1f;
    sum = sum * part - 1.6668057665e-1f;
    sum = sum * part + 2.0000714765e-1f;
    sum = sum * part - 2.4999993993e-1f;
    sum = sum * part + 3.3333331174e-1f;
    sum = sum * part * square - power * 2.12194440e-4f - 0.5f * square;
    return part + sum + power * 0.693359375f;
}

#endif
