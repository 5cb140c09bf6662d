/* Exact recommendations of FELRec-S for a batch of queries.
 *
 * A score is what the item network says of the item, plus the cosine of user and item, bounded by the trust in it, plus
 * the gain of a few hundred pairs. So all pairs are scored, and then only those other items whose upper bound reaches
 * the k-th best score. Items are visited in chunks with a common bound; all queries visit a chunk before the next one, so
 * that its vectors are read from memory once.
 */

#include <stdlib.h>
#include <string.h>

#include "scoring.h"

typedef struct { /* the best items so far, as a heap with the worst of them first */
    int32_t *rows;
    float *scores;
    int64_t count, k;
} Best;

typedef struct { /* a query after its pairs were scored */
    Set pairs;
    Best best;
    float *user; /* (width) */
    int64_t looked;
} Asked;

/* Whether one comes after another: by score, and among equal scores by row. */
INLINE int is_worse(float score, int32_t row, float other_score, int32_t other_row)
{
    return score < other_score || (score == other_score && row > other_row);
}

INLINE void sink(Best *best, int64_t at, int64_t count, float score, int32_t row)
{
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= count)
            break;
        if (child + 1 < count && is_worse(best->scores[child + 1], best->rows[child + 1], best->scores[child],
                                                 best->rows[child]))
            child++;
        if (!is_worse(best->scores[child], best->rows[child], score, row))
            break;
        best->scores[at] = best->scores[child];
        best->rows[at] = best->rows[child];
        at = child;
    }
    best->scores[at] = score;
    best->rows[at] = row;
}

/* Below this score an item is not among the best. */
INLINE float least_of(const Best *best) { return best->count < best->k ? -INFINITY : best->scores[0]; }

INLINE void offer(const Questions *asked, int64_t query, Best *best, float score, int32_t row)
{
    if (!(score > -INFINITY) || (best->count == best->k && !is_worse(best->scores[0], best->rows[0], score, row)) ||
        is_left_out(asked, query, row))
        return;
    if (best->count == best->k) {
        sink(best, 0, best->count, score, row);
        return;
    }
    int64_t at = best->count++;
    while (at && is_worse(score, row, best->scores[(at - 1) / 2], best->rows[(at - 1) / 2])) {
        best->scores[at] = best->scores[(at - 1) / 2];
        best->rows[at] = best->rows[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    best->scores[at] = score;
    best->rows[at] = row;
}

/* Best first. */
INLINE void sort_best(Best *best)
{
    for (int64_t last = best->count - 1; last > 0; last--) {
        const float score = best->scores[last];
        const int32_t row = best->rows[last];
        best->scores[last] = best->scores[0];
        best->rows[last] = best->rows[0];
        sink(best, 0, last, score, row);
    }
}

/* Score the pairs of a query, and keep the best. */
INLINE void offer_pairs(const Tables *tables, const Questions *asked, int64_t query, Asked *one, const Room *room)
{
    one->looked = score_pairs(tables, asked, query, &one->pairs, one->user, room);
    for (int64_t at = 0; at < one->looked; at++)
        offer(asked, query, &one->best, room->scores[at], room->pairs[at].row);
}

/* Score an item that is no pair, if it can be among the best. */
INLINE void look_at(const Tables *tables, const Questions *asked, int64_t query, Asked *one, int32_t row)
{
    const float least = least_of(&one->best);
    if (!(tables->upper[row] >= least) || tables->upper[row] == -INFINITY)
        return;
    one->looked++;
    const float score = tables->items[row].score + cosine_of(tables, one->user, row);
    if (score >= least && !contains(&one->pairs, row))
        offer(asked, query, &one->best, score, row);
}

INLINE void visit(const Tables *tables, const Questions *asked, Asked *all)
{
    for (int64_t query = 0; query < asked->count; query++) {
        const int64_t start = asked->candidate_starts[query];
        for (int64_t at = start; start >= 0 && at < asked->candidate_stops[query]; at++)
            if (asked->candidates[at] < tables->catalogue)
                look_at(tables, asked, query, all + query, asked->candidates[at]);
    }
    const int64_t chunks = (tables->catalogue + CHUNK - 1) / CHUNK;
    for (int64_t nth = 0; nth < chunks; nth++) {
        const int32_t chunk = tables->order[nth];
        const int64_t begin = (int64_t)chunk * CHUNK;
        const int64_t end = begin + CHUNK < tables->catalogue ? begin + CHUNK : tables->catalogue;
        for (int64_t query = 0; query < asked->count; query++)
            if (asked->candidate_starts[query] < 0 && tables->tops[chunk] >= least_of(&all[query].best))
                for (int64_t row = begin; row < end; row++)
                    look_at(tables, asked, query, all + query, (int32_t)row);
    }
}

/* The best items of each query: rows and scores, k of a query after those of the one before it, best first. Their
 * numbers are in `found`, and the numbers of scores that were computed in `looked`. Returns 0, or 1 if there is not enough
 * memory. */
ANY_PROCESSOR int felrec_answer(const Tables *tables, const Questions *asked, int32_t *rows, float *scores,
                                int64_t *found, int64_t *looked)
{
    const int64_t width = tables->encoder.width, count = asked->count;
    Room room;
    const int roomy = make_room(&room, tables, asked);
    Asked *all = calloc(count, sizeof(Asked));
    int32_t *sets = malloc(count * room.slots * sizeof(int32_t));
    float *users = malloc((count * width + 1) * sizeof(float));
    const int enough = roomy && all && sets && users;
    if (enough) {
        memset(sets, NO_ITEM, count * room.slots * sizeof(int32_t));
        for (int64_t query = 0, at = 0; query < count; at += asked->k[query++]) {
            const Set set = {sets + query * room.slots, 0, room.slots - 1};
            const Best best = {rows + at, scores + at, 0, asked->k[query]};
            all[query] = (Asked){set, best, users + query * width, 0};
            offer_pairs(tables, asked, query, all + query, &room);
        }
        visit(tables, asked, all);
        for (int64_t query = 0; query < count; query++) {
            sort_best(&all[query].best);
            found[query] = all[query].best.count;
            looked[query] = all[query].looked;
        }
    }
    free(all);
    free(sets);
    free(users);
    free_room(&room);
    return !enough;
}
