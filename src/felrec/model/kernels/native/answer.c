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
    float length; /* of `user` */
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
    const float length = sqrtf(dot(one->user, one->user, tables->encoder.width)) * (1 + SLACK);
    one->length = length < 1 ? length : 1;
    for (int64_t at = 0; at < one->looked; at++)
        offer(asked, query, &one->best, room->scores[at], room->rows[at]);
}

/* Score an item that is no pair. */
INLINE void look_at(const Tables *tables, const Questions *asked, int64_t query, Asked *one, int32_t row)
{
    one->looked++;
    const float score = item_of(tables, row)->score + cosine_of(tables, one->user, row);
    if (score >= least_of(&one->best) && !contains(&one->pairs, row))
        offer(asked, query, &one->best, score, row);
}

/* Look at the items of a chunk that can be among the best. */
INLINE void visit_chunk(const Tables *tables, const Questions *asked, int64_t query, Asked *one, int64_t chunk)
{
    if (!(bound_of(tables->tops + chunk, one->length) >= least_of(&one->best)))
        return;
    if (!is_renewed(tables, chunk))
        renew_chunk(tables, chunk);
    const int64_t end = (chunk + 1) * CHUNK < tables->catalogue ? (chunk + 1) * CHUNK : tables->catalogue;
    for (int64_t row = chunk * CHUNK; row < end; row++) {
        const Item *item = tables->items + row;
        const float most = item->score + one->length * item->reach;
        if (most + SLACK * (1 + fabsf(most)) >= least_of(&one->best) && item->score > -INFINITY)
            look_at(tables, asked, query, one, (int32_t)row);
    }
}

INLINE void visit(const Tables *tables, const Questions *asked, Asked *all)
{
    for (int64_t query = 0; query < asked->count; query++) {
        const int64_t start = asked->candidate_starts[query];
        for (int64_t at = start; start >= 0 && at < asked->candidate_stops[query]; at++) {
            const int32_t row = asked->candidates[at];
            if (row < tables->catalogue && events_of(tables, row) &&
                bound_of(tables->tops + row / CHUNK, all[query].length) >= least_of(&all[query].best))
                look_at(tables, asked, query, all + query, row);
        }
    }
    const int64_t chunks = (tables->catalogue + CHUNK - 1) / CHUNK;
    for (int64_t nth = 0; nth < chunks; nth++)
        for (int64_t query = 0; query < asked->count; query++)
            if (asked->candidate_starts[query] < 0)
                visit_chunk(tables, asked, query, all + query, tables->order[nth]);
}

/* The best items of each query: rows and scores, k of a query after those of the one before it, best first. Their
 * numbers are in `found`, and the numbers of scores that were computed in `looked`. Returns 0, or 1 if there is not enough
 * memory. */
int felrec_answer(const Tables *tables, const Questions *asked, int32_t *rows, float *scores,
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
        for (int64_t query = 0, at = 0; query < count; at += asked->k[query++]) {
            const Set set = {sets + query * room.slots, 0, room.slots - 1};
            const Best best = {rows + at, scores + at, 0, asked->k[query]};
            all[query] = (Asked){set, best, users + query * width, 0, 0};
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

/* Renew items that events have changed, and raise the bounds of their chunks. */
void felrec_renew_items(const Tables *tables, const int32_t *rows, int64_t count)
{
    for (int64_t at = 0; at < count; at++) {
        const int64_t nth = rows[at] / CHUNK;
        Chunk *chunk = tables->chunks + nth;
        raise_bounds(tables, rows[at], &chunk->bounds);
        tables->tops[nth] = top_of(tables, chunk);
    }
}

/* Score all items. */
void felrec_renew_chunks(const Tables *tables)
{
    for (int64_t nth = 0; nth * CHUNK < tables->catalogue; nth++)
        renew_chunk(tables, nth);
}

/* Let time pass: what the bounds of all chunks are at a new moment. */
void felrec_new_moment(const Tables *tables)
{
    for (int64_t nth = 0; nth * CHUNK < tables->catalogue; nth++)
        tables->tops[nth] = top_of(tables, tables->chunks + nth);
}
