/* What the user of a history wants next, as a vector that is compared with those of items: sequence_network.py. */

#ifndef FELREC_SEQUENCE_H
#define FELREC_SEQUENCE_H

#include <string.h>

#include "encoder.h"
#include "lanes.h"
#include "tables.h"

/* The weights in the order in which they are stored; matrices as (inputs, outputs). */
typedef struct {
    const float *enter, *positions, *attention_norm, *query, *key_value, *mix, *inner_norm, *expand, *expand_bias;
    const float *contract, *contract_bias, *last_norm, *leave;
} SequenceWeights;

INLINE SequenceWeights sequence_weights(const Sequence *of, int64_t length)
{
    const int64_t width = of->width, size = of->size, inner = of->inner;
    SequenceWeights weights = {.enter = of->weights};
    weights.positions = weights.enter + width * size; /* with the bias of `enter` */
    weights.attention_norm = weights.positions + length * size;
    weights.query = weights.attention_norm + 2 * size;
    weights.key_value = weights.query + size * size;
    weights.mix = weights.key_value + 2 * size * size;
    weights.inner_norm = weights.mix + size * size;
    weights.expand = weights.inner_norm + 2 * size;
    weights.expand_bias = weights.expand + size * inner;
    weights.contract = weights.expand_bias + inner;
    weights.contract_bias = weights.contract + inner * size;
    weights.last_norm = weights.contract_bias + size;
    weights.leave = weights.last_norm + 2 * size;
    return weights;
}

/* Floats of scratch memory for histories of up to n items. */
INLINE int64_t sequence_room(const Sequence *of, int64_t n)
{
    return n * (of->width + 4 * of->size) + 4 * of->size + of->inner + whole_lanes(n);
}

/* y (size) = x (inputs) w (inputs, size) */
INLINE void project(const float *x, int64_t inputs, const float *w, int64_t size, float *y)
{
    memset(y, 0, size * sizeof(float));
    add_product(1, x, inputs, inputs, w, size, size, y, size);
}

/* The attention of the newest item to all items; keys and values (n, 2 * size), `query` and `mixed` (size). */
INLINE void attend_newest(const Sequence *of, const float *query, const float *keys, int64_t n, float *share, float *mixed)
{
    const int64_t size = of->size, part = size / of->heads;
    const float scale = 1 / sqrtf((float)part);
    memset(mixed, 0, size * sizeof(float));
    for (int64_t head = 0; head < of->heads; head++) {
        for (int64_t at = 0; at < n; at++)
            share[at] = dot(query + head * part, keys + at * 2 * size + head * part, part) * scale;
        softmax(share, n);
        add_product(1, share, n, n, keys + size + head * part, 2 * size, part, mixed + head * part, size);
    }
}

/* x (size) += contract(relu(expand(norm(x)))) */
INLINE void feed_forward(const Sequence *of, const SequenceWeights *weights, float *x, float *normal, float *hidden)
{
    const int64_t size = of->size, inner = of->inner;
    layer_norm(x, weights->inner_norm, weights->inner_norm + size, size, normal);
    memcpy(hidden, weights->expand_bias, inner * sizeof(float));
    add_product(1, normal, size, size, weights->expand, inner, inner, hidden, inner);
    for (int64_t at = 0; at < inner; at++)
        hidden[at] = hidden[at] > 0 ? hidden[at] : 0;
    for (int64_t at = 0; at < size; at++)
        x[at] += weights->contract_bias[at];
    add_product(1, hidden, inner, inner, weights->contract, size, size, x, size);
}

/* The vector `wanted` (width) after `taken` items, oldest first, in a history of at most `length`; 0 without items. */
INLINE void read_sequence(const Sequence *of, const int32_t *history, int64_t taken, int64_t length, float *room,
                          float *wanted)
{
    const int64_t width = of->width, size = of->size;
    const SequenceWeights weights = sequence_weights(of, length);
    float *vectors = room, *x = vectors + taken * width, *normal = x + taken * size, *keys = normal + taken * size;
    float *query = keys + taken * 2 * size, *mixed = query + size, *last = mixed + size, *hidden = last + size;
    float *share = hidden + of->inner;
    memset(wanted, 0, width * sizeof(float));
    if (!taken)
        return;
    memset(vectors, 0, taken * width * sizeof(float));
    for (int64_t at = 0; at < taken; at++)
        if (history[at] < of->rows)
            memcpy(vectors + at * width, of->vectors + history[at] * width, width * sizeof(float));
    memcpy(x, weights.positions + (length - taken) * size, taken * size * sizeof(float));
    add_product(taken, vectors, width, width, weights.enter, size, size, x, size);
    for (int64_t at = 0; at < taken; at++)
        layer_norm(x + at * size, weights.attention_norm, weights.attention_norm + size, size, normal + at * size);
    memset(keys, 0, taken * 2 * size * sizeof(float));
    add_product(taken, normal, size, size, weights.key_value, 2 * size, 2 * size, keys, 2 * size);
    float *newest = x + (taken - 1) * size;
    project(normal + (taken - 1) * size, size, weights.query, size, query);
    attend_newest(of, query, keys, taken, share, mixed);
    add_product(1, mixed, size, size, weights.mix, size, size, newest, size);
    feed_forward(of, &weights, newest, last, hidden);
    layer_norm(newest, weights.last_norm, weights.last_norm + size, size, last);
    project(last, size, weights.leave, width, wanted);
}

/* How well an item fits what is wanted. */
INLINE float match_of(const Sequence *of, const float *wanted, int32_t row)
{
    return of->width && row < of->rows ? dot(wanted, of->vectors + row * of->width, of->width) : 0;
}

#endif
