/* The pairs of a query and their scores, which every kernel begins with. */

#ifndef FELREC_SCORING_H
#define FELREC_SCORING_H

#include <stdlib.h>
#include <string.h>

#include "entries.h"
#include "bounds.h"
#include "encoder.h"
#include "features.h"
#include "network.h"
#include "pairs.h"
#include "sequence.h"
#include "tables.h"

INLINE int is_left_out(const Questions *asked, int64_t query, int32_t row)
{
    return listed(asked->leave_out, asked->leave_out_starts[query], asked->leave_out_stops[query], row) ||
           listed(asked->hidden, 0, asked->hidden_count, row);
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
    int64_t slots; /* of a set of its pairs, at most */
    int32_t *numbers, *history;
    Pair *pairs;
    int32_t *order, *rows; /* of the pairs that can be recommended */
    float *scores;         /* theirs */
    float *encoder, *sequence, *wanted, *bias, (*network)[LANES];
    int64_t *alive;
} Room;

/* Returns 0 if there is not enough memory; `free_room` is needed either way. */
INLINE int make_room(Room *room, const Tables *tables, const Questions *asked)
{
    const int64_t pairs = most_pairs(tables, asked), length = tables->users.length;
    const int64_t hidden = tables->network.members * tables->network.hidden;
    room->slots = slots_for(pairs);
    room->numbers = malloc(room->slots * sizeof(int32_t));
    room->history = malloc((length + 1) * sizeof(int32_t));
    room->pairs = malloc((pairs + 1) * sizeof(Pair));
    room->order = malloc((pairs + 1) * sizeof(int32_t));
    room->rows = malloc((pairs + 1) * sizeof(int32_t));
    room->scores = malloc((pairs + LANES) * sizeof(float));
    room->encoder = malloc(encoder_room(&tables->encoder, length) * sizeof(float) + 64);
    room->sequence = malloc(sequence_room(&tables->sequence, length) * sizeof(float) + 64);
    room->wanted = malloc(tables->sequence.width * sizeof(float) + 64);
    room->network = malloc((tables->network.hidden + 1) * sizeof(*room->network));
    room->bias = malloc((hidden + 1) * sizeof(float));
    room->alive = malloc((tables->network.hidden + 1) * sizeof(int64_t));
    return room->numbers && room->history && room->pairs && room->order && room->rows && room->scores &&
           room->encoder && room->sequence && room->wanted && room->network && room->bias && room->alive;
}

INLINE void free_room(Room *room)
{
    void *used[] = {room->numbers, room->history,  room->pairs,  room->order,   room->rows, room->scores,
                    room->encoder, room->sequence, room->wanted, room->network, room->bias, room->alive};
    for (int64_t at = 0; at < (int64_t)(sizeof(used) / sizeof(*used)); at++)
        free(used[at]);
}

/* Collect the pairs of a query: room->pairs, and their rows in `set`; `wanted` is what its sequence says. */
INLINE Collected collect(const Tables *tables, const Questions *asked, int64_t query, Set *set, int64_t taken,
                         const float *wanted, const Room *room)
{
    const int64_t user = asked->users[query];
    int64_t events = asked->pending_stops[query] - asked->pending_starts[query];
    events += user < tables->users.owners ? tables->users.count[user] : 0;
    set->numbers = room->numbers;
    clear_set(set, room->slots < FIRST_SLOTS ? room->slots : FIRST_SLOTS);
    Collected all = {.tables = tables, .questions = asked, .query = query, .set = set, .pairs = room->pairs, .wanted = wanted,
                     .user_events = events > 1 ? (float)events : 1, .newest = NEVER,
                     .newest_events = 1 + (float)events_of(tables, taken ? room->history[taken - 1] : 0)};
    if (tables->own.size)
        collect_own(&all, events);
    collect_links(&all, &tables->near, 0, room->history, taken);
    collect_links(&all, &tables->next, 1, room->history, taken);
    collect_links(&all, &tables->ahead, 2, room->history, taken);
    return all;
}

/* Read the history of a query, and ask the memory for what is linked to it. Returns its length. */
INLINE int64_t begin_query(const Tables *tables, const Questions *asked, int64_t query, const Room *room)
{
    const int64_t taken = read_history(tables, asked, query, room->history);
    fetch_links(&tables->near, room->history, taken);
    fetch_links(&tables->next, room->history, taken);
    fetch_links(&tables->ahead, room->history, taken);
    return taken;
}

/* Features that all pairs of a query share. */
typedef struct {
    float of_all[2];
} Shared;

INLINE Shared shared_features(const Collected *all)
{
    return (Shared){{logf(1 + all->user_events) / 3, logf(1 + all->newest) / 5}};
}

/* The first bias of the pair network for the pairs of a query. */
INLINE void bias_of(const Tables *tables, const Shared *shared, float *bias)
{
    const PairNetwork *network = &tables->network;
    const int64_t all = network->members * network->hidden;
    memcpy(bias, network->first_bias, all * sizeof(float));
    if (tables->own.size)
        add_product(1, shared->of_all, 2, 2, network->first + (OWN + 7) * all, all, all, bias, all);
}

/* Encode the user (width) of a query, and score its pairs: room->rows and room->scores. Returns their number. */
INLINE int64_t score_pairs(const Tables *tables, const Questions *asked, int64_t query, Set *set, float *user,
                           const Room *room)
{
    const int64_t taken = begin_query(tables, asked, query, room);
    if (tables->encoder.width)
        encode_user(&tables->encoder, room->history, taken, tables->users.length, room->encoder, user);
    if (tables->sequence.width)
        read_sequence(&tables->sequence, room->history, taken, tables->users.length, room->sequence, room->wanted);
    const Collected all = collect(tables, asked, query, set, taken, room->wanted, room);
    const int64_t count = group_pairs(&all, room->order, room->rows);
    const Shared shared = shared_features(&all);
    bias_of(tables, &shared, room->bias);
    for (int64_t begin = 0; begin < count; begin += LANES) {
        int64_t columns[FEATURES];
        Block block;
        block_features(&all, user, room->order + begin, count - begin, &block);
        const int64_t used = columns_of(block.kinds, columns);
        const lanes gains = gains_of(&tables->network, (const float(*)[LANES])block.x, columns, used, room->bias,
                                     room->network, room->alive);
        *(lanes *)(room->scores + begin) = *(lanes *)block.scores + gains;
    }
    return count;
}

#endif
