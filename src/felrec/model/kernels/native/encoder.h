/* The vector of a user from the vectors of the newest items, or of an item from those of its newest users:
 * pooled_encoder.py for one history. */

#ifndef FELREC_ENCODER_H
#define FELREC_ENCODER_H

#include <stdlib.h>
#include <string.h>

#include "lanes.h"
#include "tables.h"

INLINE uint64_t splitmix64(uint64_t number)
{
    uint64_t word = (number + 1) * 0x9E3779B97F4A7C15u;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
    return word ^ (word >> 31);
}

/* The vector of a row that was never written (seeds.py). */
INLINE void seed_of(int64_t row, int64_t side, int64_t width, float *vector)
{
    const int64_t words = (width + 63) / 64;
    const float size = 1 / sqrtf((float)width);
    uint64_t word = 0;
    for (int64_t at = 0; at < width; at++) {
        if (at % 64 == 0)
            word = splitmix64(((uint64_t)row * 2 + (uint64_t)side) * (uint64_t)words + (uint64_t)(at / 64));
        vector[at] = word >> (at % 64) & 1 ? size : -size;
    }
}

INLINE void read_vector(const Encoder *encoder, int64_t row, float *vector)
{
    if (row < encoder->rows)
        memcpy(vector, encoder->vectors + row * encoder->width, encoder->width * sizeof(float));
    else
        seed_of(row, encoder->side, encoder->width, vector);
}

INLINE void layer_norm(const float *x, const float *weight, const float *bias, int64_t width, float *y)
{
    float mean = 0, variance = 0;
    for (int64_t at = 0; at < width; at++)
        mean += x[at];
    mean /= (float)width;
    for (int64_t at = 0; at < width; at++)
        variance += (x[at] - mean) * (x[at] - mean);
    const float scale = 1 / sqrtf(variance / (float)width + 1e-5f);
    for (int64_t at = 0; at < width; at++)
        y[at] = (x[at] - mean) * scale * weight[at] + bias[at];
}

INLINE int64_t whole_lanes(int64_t count) { return (count + LANES - 1) / LANES * LANES; }

/* Weights of `count` numbers, which are followed by room for whole lanes. */
INLINE void softmax(float *x, int64_t count)
{
    for (int64_t at = count; at < whole_lanes(count); at++)
        x[at] = -INFINITY;
    lanes most = *(lanes *)x, sum = {0};
    for (int64_t at = 0; at < count; at += LANES) {
        const int_lanes higher = *(lanes *)(x + at) > most;
        most = (lanes)((*(int_lanes *)(x + at) & higher) | ((int_lanes)most & ~higher));
    }
    float highest = most[0], total = 0;
    for (int lane = 1; lane < LANES && lane < count; lane++)
        highest = most[lane] > highest ? most[lane] : highest;
    for (int64_t at = 0; at < count; at += LANES)
        sum += *(lanes *)(x + at) = exponential(*(lanes *)(x + at) - highest);
    for (int lane = 0; lane < LANES; lane++)
        total += sum[lane];
    for (int64_t at = 0; at < count; at++)
        x[at] /= total;
}

/* x (n, width) += attention of the normalised x; `packed` holds queries, keys and values (n, 3 * width). */
INLINE void attend(const float *packed, int64_t n, int64_t width, int64_t heads, const float *output, float *x,
                   float *room)
{
    const int64_t part = width / heads, wide = whole_lanes(n);
    const float scale = 1 / sqrtf((float)part);
    float *keys = room, *share = keys + part * wide, *mixed = share + n * wide;
    memset(mixed, 0, n * width * sizeof(float));
    for (int64_t head = 0; head < heads; head++) {
        const float *query = packed + head * part, *key = query + width, *value = key + width;
        memset(keys, 0, part * wide * sizeof(float));
        for (int64_t at = 0; at < n; at++)
            for (int64_t of = 0; of < part; of++)
                keys[of * wide + at] = key[at * 3 * width + of] * scale;
        memset(share, 0, n * wide * sizeof(float));
        add_product(n, query, 3 * width, part, keys, wide, wide, share, wide);
        for (int64_t at = 0; at < n; at++)
            softmax(share + at * wide, n);
        add_product(n, share, wide, n, value, 3 * width, part, mixed + head * part, width);
    }
    add_product(n, mixed, width, width, output, width, width, x, width);
}

/* Floats of scratch memory for histories of up to n positions. */
INLINE int64_t encoder_room(const Encoder *encoder, int64_t n)
{
    const int64_t width = encoder->width, inner = encoder->feed_forward > 3 * width ? encoder->feed_forward : 3 * width;
    const int64_t part = width ? width / encoder->heads : 0, wide = whole_lanes(n);
    return n * (4 * width + inner) + part * wide + n * wide + wide + 2 * width + encoder->feed_forward;
}

/* The weights of one block, in the order in which they are stored. */
typedef struct {
    const float *attention_norm, *packed, *output, *last_norm, *expand, *expand_bias, *contract, *contract_bias, *next;
} BlockWeights;

INLINE BlockWeights block_weights(const Encoder *encoder, const float *weights)
{
    const int64_t width = encoder->width, wide = encoder->feed_forward;
    BlockWeights of = {.attention_norm = weights};
    of.packed = of.attention_norm + 2 * width;
    of.output = of.packed + 3 * width * width;
    of.last_norm = of.output + width * width;
    of.expand = of.last_norm + 2 * width;
    of.expand_bias = of.expand + width * wide;
    of.contract = of.expand_bias + wide;
    of.contract_bias = of.contract + wide * width;
    of.next = of.contract_bias + width;
    return of;
}

/* x += attention(norm(x)), then inner (n, feed_forward) = relu(expand(norm(x))). */
INLINE void encode_block(const Encoder *encoder, const BlockWeights *of, int64_t n, float *x, float *normal,
                         float *inner, float *room)
{
    const int64_t width = encoder->width, wide = encoder->feed_forward;
    for (int64_t at = 0; at < n; at++)
        layer_norm(x + at * width, of->attention_norm, of->attention_norm + width, width, normal + at * width);
    memset(inner, 0, n * 3 * width * sizeof(float));
    add_product(n, normal, width, width, of->packed, 3 * width, 3 * width, inner, 3 * width);
    attend(inner, n, width, encoder->heads, of->output, x, room);
    for (int64_t at = 0; at < n; at++) {
        layer_norm(x + at * width, of->last_norm, of->last_norm + width, width, normal + at * width);
        memcpy(inner + at * wide, of->expand_bias, wide * sizeof(float));
    }
    add_product(n, normal, width, width, of->expand, wide, wide, inner, wide);
    for (int64_t at = 0; at < n * wide; at++)
        inner[at] = inner[at] > 0 ? inner[at] : 0;
}

/* x += contract(inner) */
INLINE void contract_block(const Encoder *encoder, const BlockWeights *of, int64_t n, float *x, const float *inner)
{
    const int64_t width = encoder->width, wide = encoder->feed_forward;
    for (int64_t at = 0; at < n; at++)
        for (int64_t of_width = 0; of_width < width; of_width++)
            x[at * width + of_width] += of->contract_bias[of_width];
    add_product(n, inner, wide, wide, of->contract, width, width, x, width);
}

/* The vector (width) of `taken` counterparts, oldest first, in a history of at most `length`. */
INLINE void encode_history(const Encoder *encoder, const int32_t *history, int64_t taken, int64_t length, float *room,
                           float *encoded)
{
    const int64_t width = encoder->width, n = taken < length ? taken + 1 : length; /* a short one begins with a blank */
    const int64_t wide = encoder->feed_forward;
    const float *positions = encoder->weights + (length - n) * width;
    const float *recency = encoder->weights + length * width + length - n;
    const float *attention = encoder->weights + length * width + length, *output = attention + width;
    float *vectors = room, *x = vectors + n * width, *normal = x + n * width, *share = normal + n * width;
    float *inner = share + whole_lanes(n);
    float *more = inner + n * (wide > 3 * width ? wide : 3 * width);
    memset(vectors, 0, width * sizeof(float));
    for (int64_t at = n - taken, counterpart = 0; at < n; at++, counterpart++)
        read_vector(encoder, history[counterpart], vectors + at * width);
    for (int64_t at = 0; at < n * width; at++)
        x[at] = vectors[at] + positions[at];
    BlockWeights of = block_weights(encoder, output + width * width);
    for (int64_t layer = 0; layer < encoder->layers; layer++) {
        encode_block(encoder, &of, n, x, normal, inner, more);
        if (layer < encoder->layers - 1) {
            contract_block(encoder, &of, n, x, inner);
            of = block_weights(encoder, of.next);
        }
    }
    float *through = more; /* of the last block only products with `attention` are needed: contracts to one number */
    for (int64_t at = 0; at < wide; at++)
        through[at] = dot(of.contract + at * width, attention, width);
    for (int64_t at = 0; at < n; at++) /* the same bias for all positions would change nothing */
        share[at] = dot(x + at * width, attention, width) + dot(inner + at * wide, through, wide) + recency[at];
    softmax(share, n);
    float *pooled = more;
    memset(pooled, 0, width * sizeof(float));
    add_product(1, share, n, n, vectors, width, width, pooled, width);
    memcpy(encoded, pooled, width * sizeof(float));
    add_product(1, pooled, width, width, output, width, width, encoded, width);
}

/* About unit length; smooth where a vector vanishes. */
INLINE void to_direction(const Encoder *encoder, float *vector)
{
    const float scale = 1 / sqrtf(dot(vector, vector, encoder->width) + encoder->softness);
    for (int64_t at = 0; at < encoder->width; at++)
        vector[at] *= scale;
}

/* The direction (width) of a user with `taken` items, oldest first, in a history of at most `length`. */
INLINE void encode_user(const Encoder *encoder, const int32_t *history, int64_t taken, int64_t length, float *room,
                        float *user)
{
    encode_history(encoder, history, taken, length, room, user);
    to_direction(encoder, user);
}

#endif
