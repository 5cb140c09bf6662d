/* The encoder of histories (pooled_encoder.py) with its gradients, one history at a time.
 *
 * All activations of a history fit into the processor's second cache. They are not kept between the two passes: the
 * second one computes them again. The last layer's feed-forward part is read through one direction only, so its last
 * matrix is multiplied by that direction first, which saves a quarter of all products.
 */

#include <stdlib.h>
#include <string.h>

#include "encoder.h"
#include "transposed.h"

typedef struct { /* of some histories; mirrored in encoding.py */
    int64_t count, length, width, heads, feed_forward, layers;
    const float *weights;    /* in the order of encoder.h */
    const float *transposed; /* the same, but every matrix as (outputs, inputs) */
    const float *vectors;    /* (count, length, width), the newest last */
    const int64_t *sizes;    /* (count) how many of them are read */
    float *encoded;          /* (count, width) */
    const float *back;       /* (count, width) its gradient; NULL: only encode */
    float *gradients;        /* in the layout of `weights`; zero before */
} Encoding;

typedef struct { /* where the weights of a block begin, in `weights`, `transposed` and `gradients` alike */
    int64_t norm, packed, output, last_norm, expand, expand_bias, contract, contract_bias, end;
} Places;

typedef struct { /* what a block keeps of a history of n positions for the second pass */
    float *x, *hat, *normal, *packed, *share, *mixed; /* (n, width) but packed (n, 3 width), share (heads, n, wide) */
    float *middle, *last_hat, *last_normal, *inner;   /* (n, width), inner (n, feed_forward) */
    float *scales;                                    /* (2, n) of both norms */
} Kept;

typedef struct {
    Kept *kept; /* (layers) */
    float *share, *pooled, *folded, *of_folded, *flipped, *d, *d_wide, *d_mixed, *d_share, *memory;
} Scratch;

INLINE Places places_of(const Encoding *of, int64_t begin)
{
    const int64_t width = of->width, inner = of->feed_forward;
    Places at = {.norm = begin};
    at.packed = at.norm + 2 * width;
    at.output = at.packed + 3 * width * width;
    at.last_norm = at.output + width * width;
    at.expand = at.last_norm + 2 * width;
    at.expand_bias = at.expand + width * inner;
    at.contract = at.expand_bias + inner;
    at.contract_bias = at.contract + inner * width;
    at.end = at.contract_bias + width;
    return at;
}

INLINE float total_of(const float *x, int64_t size)
{
    lanes sum = {0};
    int64_t at = 0;
    for (; at + LANES <= size; at += LANES)
        sum += *(const lanes *)(x + at);
    float total = 0;
    for (int lane = 0; lane < LANES; lane++)
        total += sum[lane];
    for (; at < size; at++)
        total += x[at];
    return total;
}

/* Layer norm that keeps the normalised vectors (n, width) and their scales (n). */
INLINE void norm(const float *x, const float *weight, int64_t n, int64_t width, float *hat, float *scales, float *y)
{
    for (int64_t row = 0; row < n; row++, x += width, hat += width, y += width) {
        const float mean = total_of(x, width) / (float)width;
        for (int64_t at = 0; at < width; at++)
            hat[at] = x[at] - mean;
        const float scale = scales[row] = 1 / sqrtf(dot(hat, hat, width) / (float)width + 1e-5f);
        for (int64_t at = 0; at < width; at++) {
            hat[at] *= scale;
            y[at] = hat[at] * weight[at] + weight[width + at];
        }
    }
}

/* Adds to the gradient of x (n, width) and of the weights, from that of y, which is changed. */
INLINE void norm_back(float *of_y, const float *hat, const float *scales, const float *weight, int64_t n,
                      int64_t width, float *of_x, float *of_weight)
{
    for (int64_t row = 0; row < n; row++, of_y += width, hat += width, of_x += width) {
        for (int64_t at = 0; at < width; at++) {
            of_weight[at] += of_y[at] * hat[at];
            of_weight[width + at] += of_y[at];
            of_y[at] *= weight[at];
        }
        const float mean = total_of(of_y, width) / (float)width, along = dot(of_y, hat, width) / (float)width;
        for (int64_t at = 0; at < width; at++)
            of_x[at] += scales[row] * (of_y[at] - mean - hat[at] * along);
    }
}

/* (part, wide) of a head's keys or values (n, part), which are `step` apart. */
INLINE void flip(const float *x, int64_t step, int64_t n, int64_t part, int64_t wide, float scale, float *flipped)
{
    memset(flipped, 0, part * wide * sizeof(float));
    for (int64_t row = 0; row < n; row++)
        for (int64_t at = 0; at < part; at++)
            flipped[at * wide + row] = x[row * step + at] * scale;
}

/* A block up to the inner layer of its feed-forward part; middle = x + attention. */
INLINE void enter_block(const Encoding *of, const Places *at, int64_t n, const Kept *kept, const Scratch *room)
{
    const int64_t width = of->width, inner = of->feed_forward, part = width / of->heads, wide = whole_lanes(n);
    const float *weights = of->weights;
    norm(kept->x, weights + at->norm, n, width, kept->hat, kept->scales, kept->normal);
    memset(kept->packed, 0, n * 3 * width * sizeof(float));
    add_product(n, kept->normal, width, width, weights + at->packed, 3 * width, 3 * width, kept->packed, 3 * width);
    memset(kept->mixed, 0, n * width * sizeof(float));
    memset(kept->share, 0, of->heads * n * wide * sizeof(float));
    for (int64_t head = 0; head < of->heads; head++) {
        const float *query = kept->packed + head * part;
        float *share = kept->share + head * n * wide;
        flip(query + width, 3 * width, n, part, wide, 1 / sqrtf((float)part), room->flipped);
        add_product(n, query, 3 * width, part, room->flipped, wide, wide, share, wide);
        for (int64_t row = 0; row < n; row++)
            softmax(share + row * wide, n);
        add_product(n, share, wide, n, query + 2 * width, 3 * width, part, kept->mixed + head * part, width);
    }
    memcpy(kept->middle, kept->x, n * width * sizeof(float));
    add_product(n, kept->mixed, width, width, weights + at->output, width, width, kept->middle, width);
    norm(kept->middle, weights + at->last_norm, n, width, kept->last_hat, kept->scales + n, kept->last_normal);
    for (int64_t row = 0; row < n; row++)
        memcpy(kept->inner + row * inner, weights + at->expand_bias, inner * sizeof(float));
    add_product(n, kept->last_normal, width, width, weights + at->expand, inner, inner, kept->inner, inner);
    for (int64_t nth = 0; nth < n * inner; nth++)
        kept->inner[nth] = kept->inner[nth] > 0 ? kept->inner[nth] : 0;
}

/* From gradients of the middle (n, width), in room->d, and of the inner layer, in room->d_wide, to that of x, in d. */
INLINE void leave_block(const Encoding *of, const Places *at, int64_t n, const Kept *kept, const Scratch *room)
{
    const int64_t width = of->width, inner = of->feed_forward, part = width / of->heads, wide = whole_lanes(n);
    const float scale = 1 / sqrtf((float)part), *weights = of->weights, *transposed = of->transposed;
    float *to = of->gradients, *d = room->d, *d_normal = room->d_mixed, *d_packed = room->d_wide;
    for (int64_t row = 0; row < n; row++)
        for (int64_t nth = 0; nth < inner; nth++) {
            float *back = room->d_wide + row * inner + nth;
            *back = kept->inner[row * inner + nth] > 0 ? *back : 0;
            to[at->expand_bias + nth] += *back;
        }
    add_transposed_product(width, kept->last_normal, width, n, room->d_wide, inner, inner, to + at->expand, inner);
    memset(d_normal, 0, n * width * sizeof(float));
    add_product(n, room->d_wide, inner, inner, transposed + at->expand, width, width, d_normal, width);
    norm_back(d_normal, kept->last_hat, kept->scales + n, weights + at->last_norm, n, width, d, to + at->last_norm);
    add_transposed_product(width, kept->mixed, width, n, d, width, width, to + at->output, width);
    float *d_mixed = room->d_mixed; /* the gradient of the norm is no longer needed */
    memset(d_mixed, 0, n * width * sizeof(float));
    add_product(n, d, width, width, transposed + at->output, width, width, d_mixed, width);
    memset(d_packed, 0, n * 3 * width * sizeof(float));
    for (int64_t head = 0; head < of->heads; head++) {
        const float *query = kept->packed + head * part, *share = kept->share + head * n * wide;
        float *d_query = d_packed + head * part;
        add_transposed_product(n, share, wide, n, d_mixed + head * part, width, part, d_query + 2 * width, 3 * width);
        flip(query + 2 * width, 3 * width, n, part, wide, 1, room->flipped);
        memset(room->d_share, 0, n * wide * sizeof(float));
        add_product(n, d_mixed + head * part, width, part, room->flipped, wide, wide, room->d_share, wide);
        for (int64_t row = 0; row < n; row++) {
            float *back = room->d_share + row * wide;
            const float along = dot(back, share + row * wide, n);
            for (int64_t nth = 0; nth < n; nth++)
                back[nth] = share[row * wide + nth] * (back[nth] - along) * scale;
        }
        add_product(n, room->d_share, wide, n, query + width, 3 * width, part, d_query, 3 * width);
        add_transposed_product(n, room->d_share, wide, n, query, 3 * width, part, d_query + width, 3 * width);
    }
    add_transposed_product(width, kept->normal, width, n, d_packed, 3 * width, 3 * width, to + at->packed, 3 * width);
    memset(d_normal, 0, n * width * sizeof(float));
    add_product(n, d_packed, 3 * width, 3 * width, transposed + at->packed, width, width, d_normal, width);
    norm_back(d_normal, kept->hat, kept->scales, weights + at->norm, n, width, d, to + at->norm);
}

/* y += x + feed-forward of the inner layer; only for blocks that another one follows. */
INLINE void finish_block(const Encoding *of, const Places *at, int64_t n, const Kept *kept, float *y)
{
    const int64_t width = of->width, inner = of->feed_forward;
    for (int64_t nth = 0; nth < n * width; nth++)
        y[nth] = kept->middle[nth] + of->weights[at->contract_bias + nth % width];
    add_product(n, kept->inner, inner, inner, of->weights + at->contract, width, width, y, width);
}

/* The gradient of the inner layer, from that of the output, which is also that of the middle. */
INLINE void finish_back(const Encoding *of, const Places *at, int64_t n, const Kept *kept, const Scratch *room)
{
    const int64_t width = of->width, inner = of->feed_forward;
    for (int64_t nth = 0; nth < n * width; nth++)
        of->gradients[at->contract_bias + nth % width] += room->d[nth];
    add_transposed_product(inner, kept->inner, inner, n, room->d, width, width, of->gradients + at->contract, width);
    memset(room->d_wide, 0, n * inner * sizeof(float));
    add_product(n, room->d, width, width, of->transposed + at->contract, inner, inner, room->d_wide, inner);
}

/* Encode one history, and add what it contributes to the gradients. */
INLINE void encode_one(const Encoding *of, int64_t nth, const Places *at, const Scratch *room)
{
    const int64_t width = of->width, inner = of->feed_forward, n = of->sizes[nth], skipped = of->length - n;
    const int64_t recency = of->length * width, attend = recency + of->length, output = attend + width;
    const float *vectors = of->vectors + (nth * of->length + skipped) * width, *weights = of->weights;
    const float *direction = weights + attend;
    const Kept *last = room->kept + of->layers - 1;
    float *share = room->share, *pooled = room->pooled, *encoded = of->encoded + nth * width;
    for (int64_t spot = 0; spot < n * width; spot++)
        room->kept->x[spot] = vectors[spot] + weights[skipped * width + spot];
    for (int64_t layer = 0; layer < of->layers; layer++) {
        enter_block(of, at + layer, n, room->kept + layer, room);
        if (layer + 1 < of->layers)
            finish_block(of, at + layer, n, room->kept + layer, room->kept[layer + 1].x);
    }
    const float bias = dot(weights + at[of->layers - 1].contract_bias, direction, width);
    for (int64_t spot = 0; spot < n; spot++)
        share[spot] = dot(last->middle + spot * width, direction, width) + bias + weights[recency + skipped + spot] +
                      dot(last->inner + spot * inner, room->folded, inner);
    softmax(share, n);
    memset(pooled, 0, width * sizeof(float));
    add_product(1, share, n, n, vectors, width, width, pooled, width);
    memcpy(encoded, pooled, width * sizeof(float));
    add_product(1, pooled, width, width, weights + output, width, width, encoded, width);
    if (!of->back)
        return;
    const float *back = of->back + nth * width;
    float *to = of->gradients, d_pooled[width], d_share[n], along = 0;
    for (int64_t spot = 0; spot < width; spot++) {
        d_pooled[spot] = back[spot] + dot(weights + output + spot * width, back, width);
        for (int64_t of_output = 0; of_output < width; of_output++)
            to[output + spot * width + of_output] += pooled[spot] * back[of_output];
    }
    for (int64_t spot = 0; spot < n; spot++) {
        d_share[spot] = dot(vectors + spot * width, d_pooled, width);
        along += share[spot] * d_share[spot];
    }
    float total = 0;
    for (int64_t spot = 0; spot < n; spot++) {
        const float d = share[spot] * (d_share[spot] - along);
        total += d;
        to[recency + skipped + spot] += d;
        for (int64_t of_x = 0; of_x < width; of_x++) {
            room->d[spot * width + of_x] = d * direction[of_x];
            to[attend + of_x] += d * last->middle[spot * width + of_x];
        }
        for (int64_t of_inner = 0; of_inner < inner; of_inner++) {
            room->d_wide[spot * inner + of_inner] = d * room->folded[of_inner];
            room->of_folded[of_inner] += d * last->inner[spot * inner + of_inner];
        }
    }
    room->of_folded[inner] += total; /* of the bias */
    for (int64_t layer = of->layers - 1; layer >= 0; layer--) {
        if (layer + 1 < of->layers)
            finish_back(of, at + layer, n, room->kept + layer, room);
        leave_block(of, at + layer, n, room->kept + layer, room);
    }
    for (int64_t spot = 0; spot < n * width; spot++)
        to[skipped * width + spot] += room->d[spot];
}

/* The gradients of the last matrix and of the direction that it was multiplied by. */
INLINE void unfold(const Encoding *of, const Places *at, const Scratch *room)
{
    const int64_t width = of->width, inner = of->feed_forward, attend = of->length * (width + 1);
    const float *direction = of->weights + attend, *contract = of->weights + at->contract, total = room->of_folded[inner];
    for (int64_t spot = 0; spot < inner; spot++)
        for (int64_t of_x = 0; of_x < width; of_x++) {
            of->gradients[at->contract + spot * width + of_x] += room->of_folded[spot] * direction[of_x];
            of->gradients[attend + of_x] += room->of_folded[spot] * contract[spot * width + of_x];
        }
    for (int64_t of_x = 0; of_x < width; of_x++) {
        of->gradients[at->contract_bias + of_x] += total * direction[of_x];
        of->gradients[attend + of_x] += total * of->weights[at->contract_bias + of_x];
    }
}

INLINE float *taken(float **memory, int64_t count)
{
    float *begin = *memory;
    *memory += whole_lanes(count);
    return begin;
}

INLINE int64_t wider(const Encoding *of) { return of->feed_forward > 3 * of->width ? of->feed_forward : 3 * of->width; }

INLINE int make_scratch(const Encoding *of, Scratch *room)
{
    const int64_t n = of->length, width = of->width, wide = whole_lanes(n), inner = of->feed_forward;
    const int64_t kept = n * (11 * width + inner + of->heads * wide + 2);
    const int64_t more = n * (2 * width + wider(of) + 2 * wide) + width * (wide + 2) + 2 * inner + wide;
    room->kept = malloc(of->layers * sizeof(Kept));
    room->memory = malloc((of->layers * kept + more + 32 * LANES * (of->layers + 1)) * sizeof(float));
    if (!room->kept || !room->memory)
        return 0;
    float *memory = room->memory;
    for (int64_t layer = 0; layer < of->layers; layer++)
        room->kept[layer] = (Kept){
            taken(&memory, n * width), taken(&memory, n * width), taken(&memory, n * width),
            taken(&memory, n * 3 * width), taken(&memory, of->heads * n * wide), taken(&memory, n * width),
            taken(&memory, n * width), taken(&memory, n * width), taken(&memory, n * width),
            taken(&memory, n * inner), taken(&memory, 2 * n),
        };
    room->share = taken(&memory, wide);
    room->pooled = taken(&memory, width);
    room->folded = taken(&memory, inner);
    room->of_folded = taken(&memory, inner + 1);
    room->flipped = taken(&memory, width * wide);
    room->d = taken(&memory, n * width);
    room->d_wide = taken(&memory, n * wider(of));
    room->d_mixed = taken(&memory, n * width);
    room->d_share = taken(&memory, n * wide);
    return 1;
}

/* Encode histories, and with `back` also add up gradients. Returns 0, or 1 if there is not enough memory. */
int felrec_encode_histories(const Encoding *of)
{
    const int64_t width = of->width, inner = of->feed_forward, attend = of->length * (width + 1);
    Scratch room;
    Places *at = malloc(of->layers * sizeof(Places));
    const int enough = make_scratch(of, &room) && at;
    if (enough) {
        for (int64_t layer = 0; layer < of->layers; layer++)
            at[layer] = places_of(of, layer ? at[layer - 1].end : attend + width + width * width);
        const Places *last = at + of->layers - 1;
        memset(room.of_folded, 0, (inner + 1) * sizeof(float));
        for (int64_t spot = 0; spot < inner; spot++)
            room.folded[spot] = dot(of->weights + last->contract + spot * width, of->weights + attend, width);
        for (int64_t nth = 0; nth < of->count; nth++)
            encode_one(of, nth, at, &room);
        if (of->back)
            unfold(of, last, &room);
    }
    free(room.kept);
    free(room.memory);
    free(at);
    return !enough;
}
