/* The loss of FELRec-S with its gradients, in one pass: the softmax over a whole catalogue of what would have been served.
 *
 * A few queries at a time, one per lane, so that their scores of all items fit into the processor's caches and are not
 * kept. Gradients of the item scores, of the user vectors and of the trust in the cosine go back to the caller; those of
 * the pair network are computed here.
 */

#include <string.h>

#include "gradients.h"
#include "scoring.h"

enum { TOGETHER = 32, BLOCK = 64 }; /* queries, and items whose gradients are multiplied at once */
enum { PARTS = TOGETHER / LANES };

typedef struct { /* of up to TOGETHER queries; mirrored in learning.py */
    const float *users;       /* (queries, width) */
    const float *wanted;      /* (queries, width of the sequence) */
    const int32_t *targets;   /* (queries) */
    const float *item_scores; /* (members, catalogue) */
    const float *last_bias;   /* (members) of the pair network */
    const float *transposed;  /* its second layer, (members, outputs, inputs) */
    float weight;             /* of a query and a member in the loss */
    float least;              /* share of a softmax below which pairs are sampled for their gradients; 0: none are */
    float *losses;            /* (queries) */
    float *of_users;          /* gradients, in the layout of what they are of; zero before */
    float *of_wanted;
    float *of_items;
    float *of_log_trust; /* (catalogue) */
    PairGradients of_pairs;
    float *scores; /* scratch: (catalogue, TOGETHER) */
    float *features; /* scratch: (TOGETHER * pairs, FEATURES) */
    float *gains, *back; /* scratch: (TOGETHER * pairs, members) */
    int32_t *rows; /* scratch: (TOGETHER * pairs) */
} Learning;

typedef struct { /* the pairs of one query */
    int64_t begin, end;
    Shared shared;
} Span;

typedef struct {
    float most[TOGETHER], total[TOGETHER]; /* of each softmax */
    float users[1]; /* (width, TOGETHER), and then its gradient (TOGETHER, width) */
} Lanes;

/* Features x (count, FEATURES) of pairs by their numbers. */
INLINE void write_features(const Collected *all, const float *user, const int32_t *numbers, int64_t count, float *x)
{
    memset(x, 0, count * FEATURES * sizeof(float));
    for (int64_t begin = 0; begin < count; begin += LANES) {
        int64_t columns[FEATURES];
        Block block;
        block_features(all, user, numbers + begin, count - begin, &block);
        const int64_t used = columns_of(block.kinds, columns);
        for (int64_t at = begin; at < count && at < begin + LANES; at++)
            for (int64_t column = 0; column < used; column++)
                x[at * FEATURES + columns[column]] = block.x[columns[column]][at - begin];
    }
}

/* Collect the pairs of a query, their features and gains, after those of the query before. */
INLINE Span learn_pairs(const Tables *tables, const Questions *asked, int64_t query, const Learning *on, int64_t begin,
                        Set *set, const Room *room, Tile *tile)
{
    const PairNetwork *network = &tables->network;
    const int64_t members = network->members, hidden = network->hidden, all = members * hidden;
    const int64_t taken = begin_query(tables, asked, query, room);
    const float *wanted = on->wanted + query * tables->sequence.width;
    const Collected found = collect(tables, asked, query, set, taken, wanted, room);
    const int64_t count = group_pairs(&found, room->order, on->rows + begin);
    const Span span = {begin, begin + count, shared_features(&found)};
    bias_of(tables, &span.shared, room->bias);
    write_features(&found, on->users + query * tables->encoder.width, room->order, count,
                   on->features + begin * FEATURES);
    for (int64_t at = begin; at < span.end; at += TILE) {
        const int64_t rows = span.end - at < TILE ? span.end - at : TILE;
        activate(network, on->features + at * FEATURES, rows, room->bias, tile);
        for (int64_t row = 0; row < rows; row++)
            for (int64_t member = 0; member < members; member++)
                on->gains[(at + row) * members + member] =
                    dot(tile->two + row * all + member * hidden, network->last + member * hidden, hidden) +
                    on->last_bias[member] + on->features[(at + row) * FEATURES + MATCH];
    }
    return span;
}

/* Scores (catalogue, TOGETHER) without those of pairs. */
INLINE void score_all(const Tables *tables, const float *item_scores, const float *users, float *scores)
{
    const int64_t width = tables->encoder.width;
    for (int64_t begin = 0; begin < tables->catalogue; begin += ROWS) {
        const int rows = tables->catalogue - begin < ROWS ? (int)(tables->catalogue - begin) : ROWS;
        lanes sum[ROWS][PARTS] = {{{0}}};
        const float *vector[ROWS];
        for (int row = 0; row < ROWS; row++)
            vector[row] = tables->encoder.vectors + (begin + (row < rows ? row : 0)) * width;
        for (int64_t at = 0; at < width; at++)
            for (int row = 0; row < ROWS; row++)
                for (int part = 0; part < PARTS; part++)
                    sum[row][part] += vector[row][at] * *(const lanes *)(users + at * TOGETHER + part * LANES);
        for (int row = 0; row < rows; row++)
            for (int part = 0; part < PARTS; part++)
                *(lanes *)(scores + (begin + row) * TOGETHER + part * LANES) =
                    sum[row][part] * tables->items[begin + row].trust + item_scores[begin + row];
    }
}

/* The highest score and the sum of all exponentials of each query. */
INLINE void total_up(const Tables *tables, const float *scores, Lanes *of)
{
    for (int part = 0; part < PARTS; part++) {
        lanes most = *(const lanes *)(scores + part * LANES), total = {0};
        for (int64_t row = 1; row < tables->catalogue; row++) {
            const lanes score = *(const lanes *)(scores + row * TOGETHER + part * LANES);
            const int_lanes higher = score > most;
            most = (lanes)(((int_lanes)score & higher) | ((int_lanes)most & ~higher));
        }
        for (int64_t row = 0; row < tables->catalogue; row++)
            total += exponential(*(const lanes *)(scores + row * TOGETHER + part * LANES) - most);
        *(lanes *)(of->most + part * LANES) = most;
        *(lanes *)(of->total + part * LANES) = total;
    }
}

/* Gradients of all scores, as if no query had a target: of items, of the trust in them, and of users. */
INLINE void spread_back(const Tables *tables, const Learning *on, int64_t member, int64_t count, const Lanes *of,
                        float *of_users)
{
    const int64_t width = tables->encoder.width;
    float *of_items = on->of_items + member * tables->catalogue, block[BLOCK * TOGETHER];
    const float *item_scores = on->item_scores + member * tables->catalogue;
    lanes share[PARTS];
    for (int64_t at = 0; at < TOGETHER; at++)
        share[at / LANES][at % LANES] = at < count ? on->weight / of->total[at] : 0;
    for (int64_t begin = 0; begin < tables->catalogue; begin += BLOCK) {
        const int64_t rows = tables->catalogue - begin < BLOCK ? tables->catalogue - begin : BLOCK;
        for (int64_t row = 0; row < rows; row++) {
            const int64_t item = begin + row;
            lanes gradient[PARTS], weighted = {0}, of_item = {0};
            for (int part = 0; part < PARTS; part++) {
                const lanes score = *(const lanes *)(on->scores + item * TOGETHER + part * LANES);
                gradient[part] = exponential(score - *(const lanes *)(of->most + part * LANES)) * share[part];
                of_item += gradient[part];
                weighted += gradient[part] * (score - item_scores[item]);
                *(lanes *)(block + row * TOGETHER + part * LANES) = gradient[part] * tables->items[item].trust;
            }
            of_items[item] += sum_of(of_item);
            if (width)
                on->of_log_trust[item] += sum_of(weighted);
        }
        if (width)
            add_transposed_product(TOGETHER, block, TOGETHER, rows, tables->encoder.vectors + begin * width, width,
                                   width, of_users, width);
    }
}

/* Gradients of the gains of a query's pairs, which are part of its scores; and what the target adds everywhere. */
INLINE void gain_back(const Tables *tables, const Learning *on, int64_t member, int64_t query, const Span *span,
                      Lanes *of, float *of_user)
{
    const int64_t members = tables->network.members, width = tables->encoder.width;
    const int32_t target = on->targets[query];
    const float score = on->scores[target * TOGETHER + query];
    float gain = 0;
    for (int64_t at = span->begin; at < span->end; at++) {
        const int32_t row = on->rows[at];
        const lanes less = (lanes){0} + (on->scores[row * TOGETHER + query] - of->most[query]);
        const float gradient = exponential(less)[0] * on->weight / of->total[query];
        on->back[at * members + member] = gradient - (row == target ? on->weight : 0);
        if (width)
            on->of_log_trust[row] -= gradient * on->gains[at * members + member];
        if (row == target)
            gain = on->gains[at * members + member];
    }
    on->losses[query] += on->weight * (logf(of->total[query]) + of->most[query] - score);
    on->of_items[member * tables->catalogue + target] -= on->weight;
    if (!width)
        return;
    on->of_log_trust[target] -= on->weight * (score - gain - on->item_scores[member * tables->catalogue + target]);
    for (int64_t at = 0; at < width; at++)
        of_user[at] -= on->weight * tables->items[target].trust * tables->encoder.vectors[target * width + at];
}

/* The softmax of one member of the ensemble. */
INLINE void learn_member(const Tables *tables, const Questions *asked, const Learning *on, int64_t member,
                         const Span *spans, Lanes *of)
{
    const int64_t members = tables->network.members, width = tables->encoder.width, count = asked->count;
    float *of_users = of->users + width * TOGETHER;
    memset(of_users, 0, TOGETHER * width * sizeof(float));
    score_all(tables, on->item_scores + member * tables->catalogue, of->users, on->scores);
    for (int64_t query = 0; query < count; query++)
        for (int64_t at = spans[query].begin; at < spans[query].end; at++)
            on->scores[on->rows[at] * TOGETHER + query] += on->gains[at * members + member];
    total_up(tables, on->scores, of);
    spread_back(tables, on, member, count, of, of_users);
    for (int64_t query = 0; query < count; query++) {
        gain_back(tables, on, member, query, spans + query, of, of_users + query * width);
        for (int64_t at = 0; at < width; at++)
            on->of_users[query * width + at] += of_users[query * width + at];
    }
}

/* Keep all pairs with a large share of the softmax, and sample the others in proportion to theirs, with larger gradients:
 * an unbiased estimate. Most pairs are hardly ever taken, and a gradient costs three times as much as a score. */
INLINE void thin_out(const Learning *on, int64_t members, Span *span)
{
    int64_t kept = span->begin;
    for (int64_t at = span->begin; at < span->end; at++) {
        const float *back = on->back + at * members;
        float most = 0;
        for (int64_t member = 0; member < members; member++)
            most = fabsf(back[member]) > most ? fabsf(back[member]) : most;
        const float chance = most / (on->least * on->weight);
        uint32_t bits;
        memcpy(&bits, &most, sizeof(bits));
        const uint64_t random = splitmix64((uint64_t)on->rows[at] << 32 | bits) >> 40; /* of 24 bits */
        if (chance < 1 && (float)random >= chance * (1 << 24))
            continue;
        memmove(on->features + kept * FEATURES, on->features + at * FEATURES, FEATURES * sizeof(float));
        for (int64_t member = 0; member < members; member++)
            on->back[kept * members + member] = back[member] / (chance < 1 ? chance : 1);
        kept++;
    }
    span->end = kept;
}

/* Gradients of what is wanted, from those of the gains: a match is part of the gain of every member. */
INLINE void match_back(const Tables *tables, const Learning *on, const Span *span, float *of_wanted)
{
    const Sequence *sequence = &tables->sequence;
    const int64_t members = tables->network.members, width = sequence->width;
    for (int64_t at = span->begin; width && at < span->end; at++) {
        float gradient = 0;
        for (int64_t member = 0; member < members; member++)
            gradient += on->back[at * members + member];
        if (on->rows[at] < sequence->rows)
            add_product(1, &gradient, 1, 1, sequence->vectors + on->rows[at] * width, width, width, of_wanted, width);
    }
}

/* Gradients of the pair network from those of the gains. */
INLINE void network_back(const Tables *tables, const Questions *asked, Learning *on, const Span *spans,
                         const Room *room, Tile *tile, float *of_bias)
{
    const PairNetwork *network = &tables->network;
    const int64_t members = network->members, all = members * network->hidden;
    PairGradients to = on->of_pairs;
    to.first_bias = of_bias;
    for (int64_t query = 0; query < asked->count; query++) {
        const Span *span = spans + query;
        bias_of(tables, &span->shared, room->bias);
        memset(of_bias, 0, all * sizeof(float));
        for (int64_t at = span->begin; at < span->end; at += TILE) {
            const int64_t rows = span->end - at < TILE ? span->end - at : TILE;
            activate(network, on->features + at * FEATURES, rows, room->bias, tile);
            add_gradients(network, on->transposed, rows, on->back + at * members, tile, &to);
        }
        for (int64_t at = 0; at < all; at++) {
            on->of_pairs.first_bias[at] += of_bias[at];
            for (int64_t nth = 0; nth < 2 && tables->own.size; nth++)
                on->of_pairs.first[(OWN + 7 + nth) * all + at] += span->shared.of_all[nth] * of_bias[at];
        }
    }
}

/* The most pairs that any of these queries can have, by which the caller sizes the scratch memory. */
int64_t felrec_most_pairs(const Tables *tables, const Questions *asked) { return most_pairs(tables, asked); }

/* The loss of up to TOGETHER queries and its gradients. Returns 0, or 1 if there is not enough memory. */
int felrec_learn(const Tables *tables, const Questions *asked, Learning *on)
{
    const int64_t width = tables->encoder.width, all = tables->network.members * tables->network.hidden;
    Room room;
    const int roomy = make_room(&room, tables, asked);
    Set set = {malloc(room.slots * sizeof(int32_t)), 0, room.slots - 1};
    Lanes *of = calloc(1, sizeof(Lanes) + 2 * width * TOGETHER * sizeof(float));
    float *activations = malloc((3 * TILE + 1) * all * sizeof(float));
    const int enough = roomy && set.rows && of && activations;
    if (enough) {
        Tile tile = {.one = activations, .two = activations + TILE * all, .back = activations + 2 * TILE * all};
        Span spans[TOGETHER];
        for (int64_t query = 0, begin = 0; query < asked->count; begin = spans[query++].end) {
            spans[query] = learn_pairs(tables, asked, query, on, begin, &set, &room, &tile);
            for (int64_t at = 0; at < width; at++)
                of->users[at * TOGETHER + query] = on->users[query * width + at];
        }
        for (int64_t member = 0; member < tables->network.members; member++)
            learn_member(tables, asked, on, member, spans, of);
        for (int64_t query = 0; query < asked->count; query++) {
            match_back(tables, on, spans + query, on->of_wanted + query * tables->sequence.width);
            if (on->least > 0)
                thin_out(on, tables->network.members, spans + query);
        }
        network_back(tables, asked, on, spans, &room, &tile, activations + 3 * TILE * all);
    }
    free(set.rows);
    free(of);
    free(activations);
    free_room(&room);
    return !enough;
}
