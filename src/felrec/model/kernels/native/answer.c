/* Exact recommendations of FELRec-S for a batch of queries.
 *
 * A score is what the item network says of the item, plus the cosine of user and item, bounded by the trust in it, plus
 * the gain of a few hundred pairs. So all pairs are scored, and then only those other items whose upper bound reaches
 * the k-th best score. Items are visited in chunks with a common bound; all queries visit a chunk before the next one, so
 * that its vectors are read from memory once.
 */

#include <stdlib.h>
#include <string.h>

#include "encoder.h"
#include "lanes.h"
#include "network.h"
#include "pairs.h"
#include "tables.h"

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

INLINE int is_candidate(const Tables *tables, const Questions *questions, int64_t query, int32_t row)
{
    if (row >= tables->catalogue || !(tables->upper[row] > -INFINITY))
        return 0;
    const int64_t start = questions->candidate_starts[query];
    return start < 0 || listed(questions->candidates, start, questions->candidate_stops[query], row);
}

INLINE int is_left_out(const Questions *asked, int64_t query, int32_t row)
{
    return listed(asked->leave_out, asked->leave_out_starts[query], asked->leave_out_stops[query], row) ||
           listed(asked->hidden, 0, asked->hidden_count, row);
}

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

INLINE float cosine_of(const Tables *tables, const float *user, int32_t row)
{
    const Encoder *encoder = &tables->encoder;
    if (!encoder->width)
        return 0;
    return dot(user, encoder->vectors + row * encoder->width, encoder->width) * tables->items[row].trust;
}

/* The newest items of a query's user, oldest first, pending ones included; returns their number. */
INLINE int64_t read_history(const Tables *tables, const Questions *asked, int64_t query, int32_t *history)
{
    const Histories *users = &tables->users;
    const int64_t user = asked->users[query], start = asked->pending_starts[query], stop = asked->pending_stops[query];
    const int64_t count = user < users->owners ? users->count[user] : 0;
    int64_t at = users->length;
    for (int64_t from = stop; from > start && at > 0;)
        history[--at] = asked->pending[--from];
    for (int64_t nth = count; nth > 0 && nth > count - users->length && at > 0;) {
        const int32_t item = users->ring[user * users->length + --nth % users->length];
        if (item == NO_ITEM)
            break; /* erased */
        history[--at] = item;
    }
    memmove(history, history + at, (users->length - at) * sizeof(int32_t));
    return users->length - at;
}

/* Scratch memory for one query at a time. */
typedef struct {
    int32_t *numbers, *history;
    Pair *pairs;
    float *encoder, *network, *bias;
} Room;

/* Collect the pairs of a query, score them, and keep the best. */
INLINE void score_pairs(const Tables *tables, const Questions *asked, int64_t query, Asked *one, const Room *room)
{
    const int64_t taken = read_history(tables, asked, query, room->history), user = asked->users[query];
    int64_t events = asked->pending_stops[query] - asked->pending_starts[query];
    events += user < tables->users.owners ? tables->users.count[user] : 0;
    one->pairs.numbers = room->numbers;
    Collected all = {.tables = tables, .questions = asked, .query = query, .set = &one->pairs, .pairs = room->pairs,
                     .user_events = events > 1 ? (float)events : 1, .newest = NEVER,
                     .newest_events = events_of(tables, taken ? room->history[taken - 1] : 0)};
    if (tables->encoder.width)
        encode_user(&tables->encoder, room->history, taken, tables->users.length, room->encoder, one->user);
    if (tables->own.size)
        collect_own(&all, events);
    collect_links(&all, &tables->near, 1, room->history, taken);
    collect_links(&all, &tables->next, 0, room->history, taken);
    const PairNetwork *network = &tables->network;
    const int64_t hidden = network->members * network->hidden;
    const float of_all[2] = {logf(1 + all.user_events) / 3, logf(1 + all.newest) / 5};
    memcpy(room->bias, network->first_bias, hidden * sizeof(float));
    if (tables->own.size)
        add_product(1, of_all, 2, 2, network->first + (OWN + 7) * hidden, hidden, hidden, room->bias, hidden);
    one->looked = all.count;
    for (int64_t begin = 0; begin < all.count; begin += ROWS) {
        float x[ROWS * FEATURES] = {0}, cosines[ROWS] = {0}, gains[ROWS];
        const int64_t rows = all.count - begin < ROWS ? all.count - begin : ROWS;
        for (int64_t at = 0; at < rows; at++) {
            cosines[at] = cosine_of(tables, one->user, all.pairs[begin + at].row);
            pair_features(&all, all.pairs + begin + at, cosines[at], x + at * FEATURES);
        }
        gains_of(network, ROWS, x, room->bias, room->network, gains);
        for (int64_t at = 0; at < rows; at++) {
            const int32_t row = all.pairs[begin + at].row;
            offer(asked, query, &one->best, tables->items[row].score + cosines[at] + gains[at], row);
        }
    }
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

INLINE int64_t most_pairs(const Tables *tables, const Questions *asked)
{
    int64_t most = 0;
    for (int64_t query = 0; query < asked->count; query++) {
        int64_t waiting = asked->pending_stops[query] - asked->pending_starts[query];
        most = waiting > most ? waiting : most;
    }
    return most + tables->own.size + tables->near.reach * tables->near.size + tables->next.reach * tables->next.size;
}

/* The best items of each query: rows and scores, k of a query after those of the one before it, best first. Their
 * numbers are in `found`, and the numbers of scores that were computed in `looked`. Returns 0, or 1 if there is not enough
 * memory. */
ANY_PROCESSOR int felrec_answer(const Tables *tables, const Questions *asked, int32_t *rows, float *scores,
                                int64_t *found, int64_t *looked)
{
    const int64_t pairs = most_pairs(tables, asked), width = tables->encoder.width, count = asked->count;
    const int64_t hidden = tables->network.members * tables->network.hidden, length = tables->users.length;
    int64_t slots = 64;
    while (slots < 2 * pairs)
        slots *= 2;
    Asked *all = calloc(count, sizeof(Asked));
    int32_t *sets = malloc(count * slots * sizeof(int32_t));
    float *users = malloc((count * width + 1) * sizeof(float));
    Room room = {
        malloc(slots * sizeof(int32_t)), malloc((length + 1) * sizeof(int32_t)), malloc((pairs + 1) * sizeof(Pair)),
        malloc(encoder_room(&tables->encoder, length) * sizeof(float) + 64), malloc(2 * ROWS * hidden * sizeof(float)),
        malloc(hidden * sizeof(float)),
    };
    const int enough = all && sets && users && room.numbers && room.history && room.pairs && room.encoder &&
            room.network && room.bias;
    if (enough) {
        memset(sets, NO_ITEM, count * slots * sizeof(int32_t));
        for (int64_t query = 0, at = 0; query < count; at += asked->k[query++]) {
            const Set set = {sets + query * slots, 0, slots - 1};
            const Best best = {rows + at, scores + at, 0, asked->k[query]};
            all[query] = (Asked){set, best, users + query * width, 0};
            score_pairs(tables, asked, query, all + query, &room);
        }
        visit(tables, asked, all);
        for (int64_t query = 0; query < count; query++) {
            sort_best(&all[query].best);
            found[query] = all[query].best.count;
            looked[query] = all[query].looked;
        }
    }
    void *used[] = {all, sets, users, room.numbers, room.history, room.pairs, room.encoder, room.network, room.bias};
    for (int64_t at = 0; at < (int64_t)(sizeof(used) / sizeof(*used)); at++)
        free(used[at]);
    return !enough;
}
