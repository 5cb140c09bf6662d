/* Features of pairs, a pair in each lane: what repetition.py, item_links.py and hit_rates.py compute. */

#ifndef FELREC_FEATURES_H
#define FELREC_FEATURES_H

#include "bounds.h"
#include "buckets.h"
#include "pairs.h"
#include "sequence.h"

typedef struct { /* up to LANES pairs */
    const Pair *pairs[LANES];
    const Item *items[LANES];
    int32_t kinds;               /* what any of them has features of */
    float x[FEATURES][LANES];    /* only those of `kinds` */
    float scores[LANES];         /* without the gains */
} Block;

/* What a pair must have, or its feature is zero. */
enum { WITH_COSINE = KINDS, OF_ALL = 2 * KINDS, WITH_MATCH = 4 * KINDS }; /* OF_ALL: shared by all pairs of a query, and part of its bias */
static const uint16_t NEEDED[FEATURES] = {
    HAD, HAD, HAD, HAD, HAD, HAD, HAD, OF_ALL, OF_ALL,
    LINKED, LINKED, FROM_NEWEST, LINKED, LINKED, FROM_NEWEST, FROM_NEWEST,
    LINKED << 1, LINKED << 1, FROM_NEWEST << 1, LINKED << 1, LINKED << 1, FROM_NEWEST << 1, FROM_NEWEST << 1,
    HAD, LINKED, FROM_NEWEST << 1, /* hit rates */
    0, 0, WITH_COSINE, /* context */
    LINKED << 2, LINKED << 2, FROM_NEWEST << 2, LINKED << 2, LINKED << 2, FROM_NEWEST << 2, FROM_NEWEST << 2,
    WITH_MATCH,
};

/* The features that pairs of these kinds can have, ascending. Returns how many they are. */
INLINE int64_t columns_of(int32_t kinds, int64_t *columns)
{
    int64_t count = 0;
    for (int64_t at = 0; at < FEATURES; at++)
        if (!NEEDED[at] || (kinds & NEEDED[at]))
            columns[count++] = at;
    return count;
}

INLINE float hit_rate(const Tables *tables, const Counts *counts, int bucket)
{
    return counts->first_rate < 0 || bucket < 0 ? 0 : tables->rates[counts->first_rate + bucket];
}

INLINE void own_features(const Collected *all, Block *block, int lane)
{
    const Pair *pair = block->pairs[lane];
    const float is_own = pair->count > 0;
    const int newest = pair->minutes == all->newest;
    block->x[OWN][lane] = is_own;
    block->x[OWN + 1][lane] = logf(1 + pair->count);
    block->x[OWN + 2][lane] = is_own * logf(1 + pair->back);
    block->x[OWN + 3][lane] = pair->count / all->user_events;
    block->x[OWN + 4][lane] = is_own * (pair->back <= 1);
    block->x[OWN + 5][lane] = is_own * logf(1 + pair->minutes) / 5;
    block->x[OWN + 6][lane] = is_own * newest;
    const int bucket = own_bucket(pair->count, pair->back, newest);
    block->x[RATES][lane] = hit_rate(all->tables, &all->tables->own, is_own ? bucket : -1);
}

/* The logarithms of similarities; 0 for 0. */
INLINE lanes logs_of(lanes similarity) { return logarithm(similarity * (1 / FAINT) + 1.0f); }

/* `strength` is the measure by which hit rates are counted; x begins with the signal's first feature. */
INLINE void link_features(const Collected *all, const Block *block, const int signal, const Counts *counts,
                          const int strength, float (*x)[LANES], float *rates)
{
    float sums[4][LANES], newest[LANES], root[LANES];
    for (int lane = 0; lane < LANES; lane++) {
        const Pair *pair = block->pairs[lane];
        for (int sum = 0; sum < 4; sum++)
            sums[sum][lane] = pair->links[signal][sum];
        newest[lane] = pair->newest[signal];
        root[lane] = block->items[lane]->root_events;
    }
    *(lanes *)x[0] = logs_of(*(lanes *)sums[COSINE] * *(lanes *)root);
    *(lanes *)x[1] = logs_of(*(lanes *)sums[CONFIDENCE]);
    *(lanes *)x[3] = logarithm(*(lanes *)sums[COUNT] + 1.0f);
    *(lanes *)x[4] = *(lanes *)sums[PLACES];
    if (block->kinds & FROM_NEWEST << signal) {
        const lanes times = *(lanes *)newest;
        *(lanes *)x[2] = logs_of(times * (1 / all->newest_events));
        *(lanes *)x[5] = logs_of(times * (1 / sqrtf(all->newest_events)) * *(lanes *)root);
        *(lanes *)x[6] = logarithm(times + 1.0f);
    }
    if (!rates || !(block->kinds & NEEDED[NEAR + 7 * signal + strength]))
        return;
    for (int lane = 0; lane < LANES; lane++) {
        const int own = block->pairs[lane]->kind >= HAD;
        rates[lane] = hit_rate(all->tables, counts, x[strength][lane] > 0 ? link_bucket(x[strength][lane], own) : -1);
    }
}

INLINE float cosine_of(const Tables *tables, const float *user, int32_t row)
{
    const Encoder *encoder = &tables->encoder;
    if (!encoder->width)
        return 0;
    return dot(user, encoder->vectors + row * encoder->width, encoder->width) * item_of(tables, row)->trust;
}

INLINE void context_features(const Tables *tables, const float *user, const float *wanted, Block *block)
{
    for (int lane = 0; lane < LANES; lane++) {
        const Item *item = block->items[lane];
        const float cosine = cosine_of(tables, user, block->pairs[lane]->row);
        block->x[CONTEXT][lane] = item->log_events;
        block->x[CONTEXT + 1][lane] = item->score;
        block->x[CONTEXT + 2][lane] = cosine;
        block->x[MATCH][lane] = match_of(&tables->sequence, wanted, block->pairs[lane]->row);
        block->scores[lane] = item->score + cosine + block->x[MATCH][lane];
    }
}

/* Features of pairs by their numbers; if they are fewer than lanes, the last one has several. Those that all pairs of a
 * query share are part of its bias. */
INLINE void block_features(const Collected *all, const float *user, const int32_t *numbers, int64_t count,
                           Block *block)
{
    const Tables *tables = all->tables;
    block->kinds = (tables->encoder.width ? WITH_COSINE : 0) | (tables->sequence.width ? WITH_MATCH : 0);
    for (int lane = 0; lane < LANES; lane++) /* of the next block */
        __builtin_prefetch(tables->items + all->pairs[numbers[lane + LANES < count ? lane + LANES : 0]].row);
    for (int lane = 0; lane < LANES; lane++) {
        const Pair *pair = block->pairs[lane] = all->pairs + numbers[lane < count ? lane : count - 1];
        block->items[lane] = item_of(tables, pair->row);
        block->kinds |= pair->kind;
    }
    context_features(tables, user, all->wanted, block);
    if (block->kinds & HAD) {
        memset(block->x[OWN], 0, 7 * sizeof(block->x[0]));
        memset(block->x[RATES], 0, sizeof(block->x[0]));
        for (int lane = 0; lane < LANES; lane++)
            if (block->pairs[lane]->kind & HAD)
                own_features(all, block, lane);
    }
    if (block->kinds & LINKED)
        link_features(all, block, 0, &tables->near, 0, block->x + NEAR, block->x[RATES + 1]);
    if (block->kinds & LINKED << 1)
        link_features(all, block, 1, &tables->next, 2, block->x + NEXT, block->x[RATES + 2]);
    if (block->kinds & LINKED << 2) /* has no hit rates */
        link_features(all, block, 2, &tables->ahead, 1, block->x + AHEAD, 0);
}

#endif
