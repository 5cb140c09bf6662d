/* Where the target of each query comes in the ranking of a whole catalogue, without keeping a score of every item.
 *
 * Pairs of a query are scored first, as in answer.c. Of all other items, only those are scored whose bounds do not say
 * on which side of the target they are. Queries with similar target scores are compared together, so that they share
 * these items: an item's vector is read once for all of them.
 */

#include <stdlib.h>
#include <string.h>

#include "scoring.h"

enum { TOGETHER = 2 * LANES }; /* queries that are compared at once: a bit of a word and a lane each */

typedef struct {
    float score; /* of the target */
    int32_t query;
} Target;

typedef struct { /* the pairs of a query, which the comparison with all other items leaves out */
    int32_t *rows;
    int64_t count;
} Known;

typedef struct { /* what is asked of all queries, and what is found out before they are compared with all items */
    const int32_t *targets, *others; /* (queries), (queries, other_count) */
    int64_t other_count;
    float *users; /* (queries, width) */
    Known *known; /* (queries) */
} Asked;

typedef struct { /* queries that are compared together */
    int64_t count, width;
    float *users;            /* (width, TOGETHER) */
    float score[TOGETHER];   /* of their targets, ascending; infinity where there is no query */
    int32_t better[TOGETHER], equal[TOGETHER];
} Group;

static int by_score(const void *a, const void *b)
{
    const Target *one = a, *other = b;
    if (one->score != other->score)
        return one->score < other->score ? -1 : 1;
    return one->query < other->query ? -1 : 1;
}

/* By how much the score of an item without pair features can differ from what the item network says. */
INLINE float margin_of(const Item *item) { return item->reach + SLACK * (1 + fabsf(item->score) + item->reach); }

INLINE float score_of(const Tables *tables, const Set *set, const Room *room, const float *user, int32_t row)
{
    const int64_t slot = slot_of(set, row);
    if (set->rows[slot] == row && set->numbers[slot] >= 0)
        return room->scores[set->numbers[slot]];
    return item_of(tables, row)->score + cosine_of(tables, user, row);
}

/* The queries, -1 each, whose bit is not set. */
INLINE int_lanes counted(uint32_t left_out, int part)
{
    int_lanes bit;
    for (int lane = 0; lane < LANES; lane++)
        bit[lane] = 1 << lane;
    return ((int32_t)(left_out >> part * LANES) & bit) == 0;
}

/* Score a few items for a whole group, and count who is ahead of the targets; `left_out` has a bit for each query. */
INLINE void compare_items(const Tables *tables, Group *group, const int32_t *rows, const int count,
                          const uint32_t *left_out)
{
    lanes sum[ROWS][2] = {{{0}}};
    const float *vector[ROWS];
    for (int row = 0; row < ROWS; row++)
        vector[row] = tables->encoder.vectors + rows[row < count ? row : 0] * group->width;
    for (int64_t at = 0; at < group->width; at++) {
        const lanes *users = (const lanes *)(group->users + at * TOGETHER);
        for (int row = 0; row < ROWS; row++)
            for (int part = 0; part < 2; part++)
                sum[row][part] += vector[row][at] * users[part];
    }
    for (int row = 0; row < count; row++)
        for (int part = 0; part < 2; part++) {
            const Item *item = tables->items + rows[row];
            const lanes score = sum[row][part] * item->trust + item->score;
            const lanes target = *(const lanes *)(group->score + part * LANES);
            const int_lanes those = counted(left_out[rows[row]], part);
            *(int_lanes *)(group->better + part * LANES) -= (score > target) & those;
            *(int_lanes *)(group->equal + part * LANES) -= (score == target) & those;
        }
}

/* Items that wait to be scored together. */
typedef struct {
    int32_t rows[ROWS];
    int count;
} Waiting;

/* Compare the items of a chunk with the targets of a group, except for those of `left_out` (catalogue). */
INLINE void compare_chunk(const Tables *tables, Group *group, int64_t chunk, Waiting *waiting,
                          const uint32_t *left_out)
{
    const float least = group->score[0], most = group->score[group->count - 1];
    const int64_t end = (chunk + 1) * CHUNK < tables->catalogue ? (chunk + 1) * CHUNK : tables->catalogue;
    for (int64_t row = chunk * CHUNK; row < end; row++) {
        const Item *item = tables->items + row;
        const float margin = margin_of(item);
        if (!(item->score + margin >= least) || item->score == -INFINITY)
            continue;
        if (item->score - margin > most) {
            for (int part = 0; part < 2; part++)
                *(int_lanes *)(group->better + part * LANES) -= counted(left_out[row], part);
            continue;
        }
        waiting->rows[waiting->count++] = (int32_t)row;
        if (waiting->count == ROWS) {
            compare_items(tables, group, waiting->rows, ROWS, left_out);
            waiting->count = 0;
        }
    }
}

/* Compare all items. */
INLINE void compare_all(const Tables *tables, Group *group, const uint32_t *left_out)
{
    Waiting waiting = {.count = 0};
    for (int64_t chunk = 0; chunk * CHUNK < tables->catalogue; chunk++) {
        if (!(bound_of(tables->tops + chunk, 1) >= group->score[0]))
            continue;
        if (!is_renewed(tables, chunk))
            renew_chunk(tables, chunk);
        compare_chunk(tables, group, chunk, &waiting, left_out);
    }
    if (waiting.count)
        compare_items(tables, group, waiting.rows, waiting.count, left_out);
}

/* The rows that a query leaves out of the comparison: its pairs, its target, and what the user has. */
INLINE void mark(const Questions *asked, const Known *known, int64_t query, int32_t target, uint32_t bit,
                 uint32_t *left_out)
{
    for (int64_t at = 0; at < known->count; at++)
        left_out[known->rows[at]] |= bit;
    for (int64_t at = asked->leave_out_starts[query]; at < asked->leave_out_stops[query]; at++)
        left_out[asked->leave_out[at]] |= bit;
    left_out[target] |= bit;
}

/* Compare a group of queries with all items that are not their pairs; adds to `better` and `equal` (queries). */
INLINE void compare_group(const Tables *tables, const Questions *asked, const Asked *of, const Target *targets,
                          int64_t count, Group *group, uint32_t *left_out, int64_t *better, int64_t *equal)
{
    group->count = count;
    memset(left_out, 0, tables->catalogue * sizeof(uint32_t));
    memset(group->better, 0, sizeof(group->better));
    memset(group->equal, 0, sizeof(group->equal));
    for (int64_t nth = 0; nth < TOGETHER; nth++) {
        const int64_t query = targets[nth < count ? nth : 0].query;
        group->score[nth] = nth < count ? targets[nth].score : INFINITY;
        for (int64_t at = 0; at < group->width; at++)
            group->users[at * TOGETHER + nth] = of->users[query * group->width + at];
        if (nth < count)
            mark(asked, of->known + query, query, of->targets[query], 1u << nth, left_out);
    }
    compare_all(tables, group, left_out);
    for (int64_t nth = 0; nth < count; nth++) {
        better[targets[nth].query] += group->better[nth];
        equal[targets[nth].query] += group->equal[nth];
    }
}

/* Score the pairs, the target and some other items of a query, and count the pairs that are ahead of the target. */
INLINE float compare_pairs(const Tables *tables, const Questions *asked, int64_t query, const Asked *of, Set *set,
                           const Room *room, float *other_scores, int64_t *better, int64_t *equal)
{
    float *user = of->users + query * tables->encoder.width;
    const int32_t target = of->targets[query];
    const int64_t count = score_pairs(tables, asked, query, set, user, room);
    const float score = score_of(tables, set, room, user, target);
    for (int64_t nth = 0; nth < of->other_count; nth++)
        other_scores[nth] = score_of(tables, set, room, user, of->others[query * of->other_count + nth]);
    *better = 0;
    *equal = 1; /* the target itself */
    of->known[query].count = count;
    for (int64_t at = 0; at < count; at++) {
        const int32_t row = of->known[query].rows[at] = room->rows[at];
        if (room->scores[at] >= score && row != target && !is_left_out(asked, query, row)) {
            *better += room->scores[at] > score;
            *equal += room->scores[at] == score;
        }
    }
    return score;
}

/* For each query, the number of items with a higher score than its target, and with the same one, the target included;
 * the scores of the targets and of `other_count` other rows. Items that a query leaves out do not count. Returns 0, or 1
 * if there is not enough memory. */
int felrec_compare(const Tables *tables, const Questions *asked, const int32_t *targets,
                                 const int32_t *others, int64_t other_count, float *target_scores,
                                 float *other_scores, int64_t *better, int64_t *equal)
{
    const int64_t count = asked->count, width = tables->encoder.width, pairs = most_pairs(tables, asked);
    Room room;
    const int roomy = make_room(&room, tables, asked);
    int32_t *rows = malloc((room.slots + count * pairs + 1) * sizeof(int32_t));
    float *users = malloc((count + TOGETHER) * (width + 1) * sizeof(float));
    uint32_t *left_out = malloc((tables->catalogue + 1) * sizeof(uint32_t));
    Known *known = malloc(count * sizeof(Known));
    Target *ordered = malloc(count * sizeof(Target));
    const int enough = roomy && rows && users && left_out && known && ordered;
    if (enough) {
        const Asked of = {targets, others, other_count, users, known};
        for (int64_t query = 0; query < count; query++) {
            Set set = {rows, 0, room.slots - 1};
            known[query].rows = rows + room.slots + query * pairs;
            target_scores[query] = compare_pairs(tables, asked, query, &of, &set, &room,
                                                 other_scores + query * other_count, better + query, equal + query);
            ordered[query] = (Target){target_scores[query], (int32_t)query};
        }
        qsort(ordered, count, sizeof(Target), by_score);
        Group group = {.width = width, .users = users + count * width};
        for (int64_t begin = 0; begin < count; begin += TOGETHER)
            compare_group(tables, asked, &of, ordered + begin, count - begin < TOGETHER ? count - begin : TOGETHER,
                          &group, left_out, better, equal);
    }
    free(rows);
    free(users);
    free(left_out);
    free(known);
    free(ordered);
    free_room(&room);
    return !enough;
}
