/* The pairs of a query and their scores, which every kernel begins with. */

#ifndef FELREC_SCORING_H
#define FELREC_SCORING_H

#include <stdlib.h>
#include <string.h>

#include "entries.h"
#include "bounds.h"
#include "encoder.h"
#include "network.h"
#include "pairs.h"
#include "tables.h"

INLINE int is_candidate(const Tables *tables, const Questions *questions, int64_t query, int32_t row)
{
    if (row >= tables->catalogue || !events_of(tables, row))
        return 0;
    const int64_t start = questions->candidate_starts[query];
    return start < 0 || listed(questions->candidates, start, questions->candidate_stops[query], row);
}

INLINE int is_left_out(const Questions *asked, int64_t query, int32_t row)
{
    return listed(asked->leave_out, asked->leave_out_starts[query], asked->leave_out_stops[query], row) ||
           listed(asked->hidden, 0, asked->hidden_count, row);
}

INLINE float cosine_of(const Tables *tables, const float *user, int32_t row)
{
    const Encoder *encoder = &tables->encoder;
    if (!encoder->width)
        return 0;
    return dot(user, encoder->vectors + row * encoder->width, encoder->width) * item_of(tables, row)->trust;
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
        history[--at] = row_of(item);
    }
    memmove(history, history + at, (users->length - at) * sizeof(int32_t));
    return users->length - at;
}

INLINE int64_t most_pairs(const Tables *tables, const Questions *asked)
{
    int64_t most = 0;
    for (int64_t query = 0; query < asked->count; query++) {
        int64_t waiting = asked->pending_stops[query] - asked->pending_starts[query];
        most = waiting > most ? waiting : most;
    }
    return most + tables->own.size + tables->near.reach * tables->near.size + tables->next.reach * tables->next.size +
           tables->ahead.reach * tables->ahead.size;
}

/* Scratch memory for one query at a time. */
typedef struct {
    int64_t slots; /* of a set of its pairs */
    int32_t *numbers, *history;
    Pair *pairs;
    float *scores; /* of the pairs */
    float *encoder, *network, *bias;
} Room;

/* Returns 0 if there is not enough memory; `free_room` is needed either way. */
INLINE int make_room(Room *room, const Tables *tables, const Questions *asked)
{
    const int64_t pairs = most_pairs(tables, asked), length = tables->users.length;
    const int64_t hidden = tables->network.members * tables->network.hidden;
    room->slots = 64;
    while (room->slots < 2 * pairs)
        room->slots *= 2;
    room->numbers = malloc(room->slots * sizeof(int32_t));
    room->history = malloc((length + 1) * sizeof(int32_t));
    room->pairs = malloc((pairs + 1) * sizeof(Pair));
    room->scores = malloc((pairs + ROWS) * sizeof(float));
    room->encoder = malloc(encoder_room(&tables->encoder, length) * sizeof(float) + 64);
    room->network = malloc(2 * ROWS * hidden * sizeof(float));
    room->bias = malloc(hidden * sizeof(float));
    return room->numbers && room->history && room->pairs && room->scores && room->encoder && room->network &&
           room->bias;
}

INLINE void free_room(Room *room)
{
    void *used[] = {room->numbers, room->history, room->pairs, room->scores, room->encoder, room->network, room->bias};
    for (int64_t at = 0; at < (int64_t)(sizeof(used) / sizeof(*used)); at++)
        free(used[at]);
}

/* Collect the pairs of a query: room->pairs, and their rows in `set`, which has no rows before. */
INLINE Collected collect(const Tables *tables, const Questions *asked, int64_t query, Set *set, int64_t taken,
                         const Room *room)
{
    const int64_t user = asked->users[query];
    int64_t events = asked->pending_stops[query] - asked->pending_starts[query];
    events += user < tables->users.owners ? tables->users.count[user] : 0;
    set->numbers = room->numbers;
    Collected all = {.tables = tables, .questions = asked, .query = query, .set = set, .pairs = room->pairs,
                     .user_events = events > 1 ? (float)events : 1, .newest = NEVER,
                     .newest_events = 1 + (float)events_of(tables, taken ? room->history[taken - 1] : 0)};
    if (tables->own.size)
        collect_own(&all, events);
    collect_links(&all, &tables->near, 0, room->history, taken);
    collect_links(&all, &tables->next, 1, room->history, taken);
    collect_links(&all, &tables->ahead, 2, room->history, taken);
    return all;
}

/* Encode the user (width) of a query, and score its pairs: room->pairs and room->scores. Returns their number. */
INLINE int64_t score_pairs(const Tables *tables, const Questions *asked, int64_t query, Set *set, float *user,
                           const Room *room)
{
    const int64_t taken = read_history(tables, asked, query, room->history);
    if (tables->encoder.width)
        encode_user(&tables->encoder, room->history, taken, tables->users.length, room->encoder, user);
    const Collected all = collect(tables, asked, query, set, taken, room);
    const PairNetwork *network = &tables->network;
    const int64_t hidden = network->members * network->hidden;
    const float of_all[2] = {logf(1 + all.user_events) / 3, logf(1 + all.newest) / 5};
    memcpy(room->bias, network->first_bias, hidden * sizeof(float));
    if (tables->own.size)
        add_product(1, of_all, 2, 2, network->first + (OWN + 7) * hidden, hidden, hidden, room->bias, hidden);
    for (int64_t begin = 0; begin < all.count; begin += ROWS) {
        float x[ROWS * FEATURES] = {0}, cosines[ROWS] = {0}, gains[ROWS];
        const int64_t rows = all.count - begin < ROWS ? all.count - begin : ROWS;
        for (int64_t at = 0; at < rows; at++) {
            cosines[at] = cosine_of(tables, user, all.pairs[begin + at].row);
            pair_features(&all, all.pairs + begin + at, cosines[at], x + at * FEATURES);
        }
        gains_of(network, ROWS, x, room->bias, room->network, gains);
        for (int64_t at = 0; at < rows; at++)
            room->scores[begin + at] = item_of(tables, all.pairs[begin + at].row)->score + cosines[at] + gains[at];
    }
    return all.count;
}

#endif
