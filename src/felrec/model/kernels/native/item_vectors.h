/* The vectors of items that a block of events changes: sequence.py. */

#ifndef FELREC_ITEM_VECTORS_H
#define FELREC_ITEM_VECTORS_H

#include "encoder.h"
#include "links.h"
#include "trend.h"

static const float VECTOR_FADE = 0.998f, EVENTS_MORE = 10, SEED_MASS = 0.01f, LEAST_SPREAD = 0.02f, LARGEST_STEP = 0.02f, TINY = 1e-12f;
static const double SPREAD_HALF_LIFE = 20000; /* in events */

typedef struct { /* one item came before another one */
    int32_t before, after;
    float weight;
} Move;

typedef struct { /* scratch memory for the rows of a block */
    float *added, *used; /* (rows, width), (rows, 2) */
    float *whole;        /* three matrices (width / 2, width / 2) */
} VectorRoom;

/* From each of the user's last ten items to this one; returns how many. */
INLINE int64_t moves_to(const int32_t *history, int64_t taken, int32_t item, int again, Move *moves)
{
    int64_t count = 0;
    for (int64_t at = taken > WINDOW ? taken - WINDOW : 0; at < taken; at++)
        if (history[at] != item && (!again || !met_before(history, taken, item, history[at])))
            moves[count++] = (Move){history[at], item, 1 / (float)(taken - at)};
    return count;
}

INLINE int64_t distinct_rows(const Block *block, const Move *moves, int64_t count, Key *keys, Key *room, int32_t *rows)
{
    int64_t all = 0, distinct = 0;
    for (int64_t at = 0; at < count; at++)
        keys[all++] = (Key){(uint64_t)moves[at].before, 0};
    for (int64_t at = 0; at < block->count; at++)
        keys[all++] = (Key){(uint64_t)block->items[at], 0};
    sort_keys(keys, all, room);
    for (int64_t at = 0; at < all; at = end_of_group(keys, at, all, 0))
        rows[distinct++] = (int32_t)keys[at].key;
    return distinct;
}

INLINE int64_t place_of(const int32_t *rows, int64_t count, int32_t row)
{
    int64_t begin = 0;
    for (int64_t end = count; begin + 1 < end;) {
        const int64_t middle = begin + (end - begin) / 2;
        if (rows[middle] <= row)
            begin = middle;
        else
            end = middle;
    }
    return begin;
}

/* A vector that was never written is short and random. */
INLINE void read_item(const Sequence *of, const float *masses, int64_t row, float *vector, float *mass)
{
    const int64_t width = of->width, half = width / 2;
    if (row < of->rows && masses[2 * row] != 0) {
        memcpy(vector, of->vectors + row * width, width * sizeof(float));
        memcpy(mass, masses + 2 * row, 2 * sizeof(float));
        return;
    }
    for (int side = 0; side < 2; side++) {
        seed_of(row, side, half, vector + side * half);
        mass[side] = SEED_MASS;
    }
}

/* What moves add to each row: to the first half of the item before the second half of the one after, and the other way round. */
INLINE void add_moves(const State *state, const Move *moves, int64_t count, const Change *to, VectorRoom *room)
{
    const int64_t width = state->sequence.width, half = width / 2;
    for (int64_t at = 0; at < count; at++) {
        const int32_t rows[2] = {moves[at].before, moves[at].after};
        const int64_t places[2] = {place_of(to->sequence_rows, to->sequence, rows[0]),
                                   place_of(to->sequence_rows, to->sequence, rows[1])};
        for (int side = 0; side < 2; side++) {
            const float events = (float)events_before(&state->items, rows[1 - side]) + EVENTS_MORE;
            const float share = moves[at].weight / sqrtf(events);
            add_product(1, &share, 1, 1, to->sequence_vectors + places[1 - side] * width + (1 - side) * half, half, half,
                        room->added + places[side] * width + side * half, half);
            room->used[2 * places[side] + side] += moves[at].weight;
        }
    }
}

/* The spread of the directions that were added, a running mean. */
INLINE void change_spread(const State *state, int64_t events, int side, const Change *to, VectorRoom *room)
{
    const int64_t width = state->sequence.width, half = width / 2, size = half * half;
    const double whole = 1 - exp2(-(double)events / SPREAD_HALF_LIFE);
    const float step = whole < LARGEST_STEP ? (float)whole : LARGEST_STEP;
    const float *before = state->spread + side * size;
    float *after = to->sequence_spread + side * size, direction[half];
    int64_t touched = 0;
    memset(room->whole, 0, size * sizeof(float));
    for (int64_t row = 0; row < to->sequence; row++) {
        if (room->used[2 * row + side] == 0)
            continue;
        const float *added = room->added + row * width + side * half, scale = 1 / sqrtf(dot(added, added, half) + TINY);
        for (int64_t at = 0; at < half; at++)
            direction[at] = added[at] * scale;
        add_product(half, direction, 1, 1, direction, half, half, room->whole, half);
        touched++;
    }
    for (int64_t at = 0; at < size; at++)
        after[at] = touched ? before[at] + step * (room->whole[at] / (float)touched - before[at]) : before[at];
}

/* The inverse root of a spread, by two steps of Newton's method from what it was `before`; `room` has three matrices. */
INLINE void whiten(const float *spread, const float *before, int64_t half, float *room, float *after)
{
    const int64_t size = half * half;
    float *whole = room, *square = whole + size, *product = square + size, trace = 0;
    for (int64_t at = 0; at < half; at++)
        trace += spread[at * half + at];
    for (int64_t at = 0; at < size; at++)
        whole[at] = spread[at] * ((float)half / trace) + (at % (half + 1) == 0 ? LEAST_SPREAD : 0);
    memcpy(after, before, size * sizeof(float));
    for (int step = 0; step < 2; step++) {
        memset(square, 0, 2 * size * sizeof(float));
        add_product(half, after, half, half, after, half, half, square, half);
        add_product(half, whole, half, half, square, half, half, product, half);
        memset(square, 0, size * sizeof(float));
        add_product(half, after, half, half, product, half, half, square, half);
        for (int64_t row = 0; row < half; row++)
            for (int64_t at = 0; at <= row; at++) {
                const int64_t here = row * half + at, there = at * half + row;
                const float mean = 0.75f * (after[here] + after[there]) - 0.25f * (square[here] + square[there]);
                after[here] = after[there] = mean;
            }
    }
}

/* The vectors of all items that a block touches, each from the vectors as they were before. */
INLINE void change_vectors(const State *state, const Block *block, const Move *moves, int64_t count, Key *keys,
                           Key *sorting, VectorRoom *room, Change *to)
{
    const int64_t width = state->sequence.width, half = width / 2;
    to->whitening = moment_after(&state->trend, block->count) != state->trend.log[1] ? 2 : 0;
    to->sequence = distinct_rows(block, moves, count, keys, sorting, to->sequence_rows);
    memset(room->added, 0, to->sequence * width * sizeof(float));
    memset(room->used, 0, to->sequence * 2 * sizeof(float));
    for (int64_t row = 0; row < to->sequence; row++)
        read_item(&state->sequence, state->masses, to->sequence_rows[row], to->sequence_vectors + row * width,
                  to->sequence_masses + 2 * row);
    add_moves(state, moves, count, to, room);
    for (int side = 0; side < 2; side++) {
        change_spread(state, block->count, side, to, room);
        if (to->whitening)
            whiten(to->sequence_spread + side * half * half, state->whitening + side * half * half, half, room->whole,
                   to->sequence_whitening + side * half * half);
        for (int64_t row = 0; row < to->sequence; row++) {
            float *vector = to->sequence_vectors + row * width + side * half, *mass = to->sequence_masses + 2 * row + side;
            const float kept = *mass * powf(VECTOR_FADE, room->used[2 * row + side]);
            for (int64_t at = 0; at < half; at++)
                vector[at] *= kept;
        }
        add_product(to->sequence, room->added + side * half, width, half, state->whitening + side * half * half, half,
                    half, to->sequence_vectors + side * half, width);
        for (int64_t row = 0; row < to->sequence; row++) {
            float *vector = to->sequence_vectors + row * width + side * half, *mass = to->sequence_masses + 2 * row + side;
            *mass = sqrtf(dot(vector, vector, half) + TINY);
            for (int64_t at = 0; at < half; at++)
                vector[at] /= *mass;
        }
    }
}

#endif
