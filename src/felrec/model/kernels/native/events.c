/* How a block of events changes the state of a FELRec-S, and how that change is applied.
 *
 * Computing a change only reads the state. Every signal sees the state before the block, and of each event's user also
 * the earlier events of the block.
 */

#include <stdlib.h>
#include <string.h>

#include "encoder.h"
#include "events.h"
#include "histories.h"
#include "item_vectors.h"
#include "links.h"
#include "rates.h"
#include "top_k.h"
#include "trend.h"

enum { LINKS = 2 * WINDOW + 1 }; /* of an event, at most, with the row that a new item gets */

typedef struct { /* scratch memory for a block */
    Key *keys, *sorting, *near, *next, *ahead;
    Entry *entries;
    Fresh *fresh;
    int64_t *previous, *taken;
    float *worth; /* of each event, for the trend */
    int32_t *history;
    float *strength;
    MetPairs met;
    Move *moves;
    VectorRoom vectors;
} Room;

INLINE int64_t largest(int64_t a, int64_t b) { return a > b ? a : b; }

INLINE int take_room(Room *room, const State *state, int64_t events)
{
    const int64_t keys = largest(2 * events + PACE, LINKS * events), size = largest(state->own.size, 1);
    const int64_t pairs = state->rates ? most_met(state, events) : 1, slots = slots_for(pairs);
    const int64_t width = state->sequence.width, vectors = width ? (WINDOW + 1) * events : 0;
    *room = (Room){
        .keys = malloc(keys * sizeof(Key)),
        .sorting = malloc(keys * sizeof(Key)),
        .near = malloc(LINKS * events * sizeof(Key)),
        .next = malloc(2 * events * sizeof(Key)),
        .ahead = malloc((SOON + 1) * events * sizeof(Key)),
        .entries = malloc((2 * events + PACE) * sizeof(Entry)),
        .fresh = malloc(LINKS * events * sizeof(Fresh)),
        .previous = malloc(events * sizeof(int64_t)),
        .taken = malloc(events * sizeof(int64_t)),
        .worth = malloc(events * sizeof(float)),
        .history = malloc((state->users.length + 1) * sizeof(int32_t)),
        .strength = malloc(largest(largest(size, state->ahead.size), largest(state->near.size, state->next.size)) * sizeof(float)),
        .met = {.state = state, .set = {malloc(slots * sizeof(int32_t)), malloc(slots * sizeof(int32_t)), slots - 1},
                .pairs = malloc(pairs * sizeof(Met))},
        .moves = malloc(vectors * sizeof(Move) + 1),
        .vectors = {malloc(vectors * width * sizeof(float) + 1), malloc(vectors * 2 * sizeof(float) + 1),
                    malloc(3 * width * width / 4 * sizeof(float) + 1)},
    };
    if (room->met.set.rows)
        memset(room->met.set.rows, NO_ITEM, slots * sizeof(int32_t));
    return room->keys && room->sorting && room->near && room->next && room->ahead && room->entries && room->fresh &&
           room->previous && room->taken && room->worth && room->history && room->strength && room->met.set.rows &&
           room->met.set.numbers && room->met.pairs && room->moves && room->vectors.added && room->vectors.used &&
           room->vectors.whole;
}

INLINE void free_room(Room *room)
{
    void *used[] = {room->keys, room->sorting, room->near, room->next, room->ahead, room->entries, room->fresh,
                    room->previous, room->taken, room->worth, room->history, room->strength, room->met.set.rows,
                    room->met.set.numbers, room->met.pairs, room->moves, room->vectors.added, room->vectors.used,
                    room->vectors.whole};
    for (int64_t at = 0; at < (int64_t)(sizeof(used) / sizeof(*used)); at++)
        free(used[at]);
}

typedef struct { /* sums over the events of a block */
    int64_t near, next, ahead, moves, counted, sampled; /* numbers of links, of events that count, and of those with sampled pairs */
    double facts[PROFILE];
} Sums;

INLINE int has(const Counts *of, int64_t owner, int32_t other)
{
    const Row row = row_of_counts(of, owner);
    return slot_in(row.other, row.used, other) != NOTHING;
}

/* Make plain rows of marked entries; returns the highest step of an item among them, 0 if there is none. */
INLINE int32_t strip_marks(int32_t *history, int64_t held, int32_t item)
{
    int32_t highest = 0;
    for (int64_t at = 0; at < held; at++) {
        const int32_t step = step_in(history[at]);
        history[at] = row_of(history[at]);
        if (history[at] == item && step > highest)
            highest = step;
    }
    return highest;
}

/* What one event adds to links, profile and hit rates. */
INLINE void look_at_event(const State *state, const Block *block, int64_t event, Room *room, Sums *sums, Change *to)
{
    const int32_t item = block->items[event], *history = room->history;
    const int64_t held = history_before(state, block, event, room->previous, room->history);
    const int32_t had = strip_marks(room->history, held, item);
    const int64_t taken = room->taken[event];
    const int again = slot_in(history, held, item) != NOTHING, new = events_before(&state->items, item) == 0;
    const float weight = weight_of(block, event);
    const int counts = weight != 0;
    room->worth[event] = step_of(weight) <= had ? 0 : isnan(weight) ? 1 : weight;
    sums->counted += counts;
    if (state->near.size)
        sums->near += links_together(history, held, item, again, room->near + sums->near);
    if (state->next.size)
        sums->next += links_following(history, held, item, again, room->next + sums->next);
    if (state->ahead.size)
        sums->ahead += links_ahead(history, held, item, again, room->ahead + sums->ahead);
    if (state->sequence.width)
        sums->moves += moves_to(history, held, item, again, room->moves + sums->moves);
    if (new && state->near.size)
        room->near[sums->near++] = (Key){meeting(item, NO_MEETING), 0};
    if (new && state->next.size)
        room->next[sums->next++] = (Key){meeting(item, NO_MEETING), 0};
    if (new && state->ahead.size)
        room->ahead[sums->ahead++] = (Key){meeting(item, NO_MEETING), 0};
    if (state->profile && counts) {
        const int repeats = again || has(&state->own, block->users[event], item);
        const int follows = taken > 0 && has(&state->near, held ? history[held - 1] : 0, item);
        add_facts(state, item, taken, repeats, follows, sums->facts);
    }
    if (state->rates && counts && (state->trend.log[0] + event) % EVERY == 0) {
        sums->sampled++;
        add_pairs(&room->met, block, event, room->previous, history, held, taken, to->rate_counts,
                  to->rate_counts + state->cells);
    }
}

INLINE void count_own(const State *state, const Block *block, Room *room, Change *to)
{
    const TopK rows = {0, to->own_other, to->own_count, to->own_nth, to->own_minute};
    const Marks marks = {room->taken, block->times};
    for (int64_t at = 0; at < block->count; at++)
        room->keys[at] = (Key){meeting(block->users[at], block->items[at]), at};
    count_meetings(&state->own, OWN_FADE, room->keys, block->count, room->sorting, &marks, &rows, room->fresh,
                   room->strength);
}

/* The rows that a block changes, without vectors. Returns 0, or 1 if there is not enough memory. */
int felrec_change(const State *state, const Block *block, Change *to)
{
    Room room;
    Sums sums = {0};
    const int enough = take_room(&room, state, block->count + block->against);
    if (enough) {
        to->items = append_histories(&state->items, block->items, block->users, 0, block->count, room.keys, room.sorting, 0,
                                     0, to->item_rows, to->item_ring, to->item_count);
        to->users = append_histories(&state->users, block->users, block->items, block->weights, block->count, room.keys, room.sorting,
                                     room.previous, room.taken, to->user_rows, to->user_ring, to->user_count);
        if (state->rates)
            memset(to->rate_counts, 0, 2 * state->cells * sizeof(float));
        for (int64_t event = 0; event < block->count; event++)
            look_at_event(state, block, event, &room, &sums, to);
        const TopK near = {to->near_rows, to->near_other, to->near_count, 0, 0};
        const TopK next = {to->next_rows, to->next_other, to->next_count, 0, 0};
        const TopK ahead = {to->ahead_rows, to->ahead_other, to->ahead_count, 0, 0};
        to->near = count_meetings(&state->near, LINK_FADE, room.near, sums.near, room.sorting, 0, &near, room.fresh,
                                  room.strength);
        to->next = count_meetings(&state->next, LINK_FADE, room.next, sums.next, room.sorting, 0, &next, room.fresh,
                                  room.strength);
        to->ahead = count_meetings(&state->ahead, LINK_FADE, room.ahead, sums.ahead, room.sorting, 0, &ahead,
                                   room.fresh, room.strength);
        if (state->own.size)
            count_own(state, block, &room, to);
        if (state->trend.log)
            change_trend(&state->trend, block, room.worth, room.keys, room.sorting, room.entries, to);
        if (state->profile)
            change_profile(state, block->count, sums.counted, sums.facts, to);
        if (state->rates)
            change_rates(state, sums.sampled, to);
        if (state->sequence.width)
            change_vectors(state, block, room.moves, sums.moves, room.keys, room.sorting, &room.vectors, to);
    }
    free_room(&room);
    return !enough;
}

/* The vectors of some of the users and items of a change, from `begin` to `end`; items are numbered after users. */
int felrec_encode(const State *state, const Change *change, int64_t begin, int64_t end)
{
    const int64_t length = state->users.length, width = state->of_users.width, users = change->users;
    float *room = malloc(encoder_room(&state->of_users, length) * sizeof(float) + 64);
    int32_t *history = malloc((length + 1) * sizeof(int32_t));
    float *seed = malloc((width + 1) * sizeof(float));
    const int enough = room && history && seed;
    for (int64_t at = begin; enough && at < end; at++) {
        const int is_item = at >= users;
        const int64_t nth = is_item ? at - users : at;
        const Encoder *encoder = is_item ? &state->of_items : &state->of_users;
        const int32_t *ring = (is_item ? change->item_ring : change->user_ring) + nth * length;
        const int64_t count = (is_item ? change->item_count : change->user_count)[nth];
        float *vector = (is_item ? change->item_vectors : change->user_vectors) + nth * width;
        encode_history(encoder, history, unrolled(ring, count, length, history), length, room, vector);
        if (is_item) {
            seed_of(change->item_rows[nth], state->of_users.side, width, seed);
            for (int64_t of = 0; of < width; of++)
                vector[of] += state->seed_share * seed[of];
        }
        to_direction(encoder, vector);
    }
    free(room);
    free(history);
    free(seed);
    return !enough;
}

INLINE void write_rows(const void *table, int64_t row_bytes, const int32_t *rows, int64_t count, const void *values)
{
    for (int64_t at = 0; table && at < count; at++)
        memcpy((char *)table + rows[at] * row_bytes, (const char *)values + at * row_bytes, row_bytes);
}

/* The slots that a row with so many used ones has room for: packed_rows.py. */
INLINE int64_t room_of(int64_t used, int64_t size)
{
    int64_t room = used ? 4 : 0;
    while (room < used)
        room *= 2;
    return room < size ? room : size;
}

/* Rows whose room changes move to the end, where there is enough. */
INLINE void write_counts(const Counts *of, const int32_t *rows, int64_t count, const TopK *values)
{
    for (int64_t at = 0; of->size && at < count; at++) {
        const int64_t from = at * of->size, room_before = room_of(of->used[rows[at]], of->size);
        int64_t used = of->size;
        while (used && values->other[from + used - 1] == NOTHING)
            used--;
        const int64_t room = room_of(used, of->size);
        if (room != room_before) {
            of->place[rows[at]] = *of->end;
            *of->end += room;
        }
        of->used[rows[at]] = (int32_t)used;
        const int64_t to = of->place[rows[at]], bytes = used * 4;
        memcpy(of->other + to, values->other + from, bytes);
        memcpy(of->count + to, values->count + from, bytes);
        if (of->nth) {
            memcpy(of->nth + to, values->nth + from, bytes);
            memcpy(of->minute + to, values->minute + from, bytes);
        }
    }
}

INLINE void write_vectors(const Encoder *of, float *lengths, const int32_t *rows, int64_t count, const float *vectors)
{
    write_rows(of->vectors, of->width * sizeof(float), rows, count, vectors);
    for (int64_t at = 0; of->width && at < count; at++)
        lengths[rows[at]] = sqrtf(dot(vectors + at * of->width, vectors + at * of->width, of->width));
}

/* Copy the rows of a change into the tables, which have room for them. Returns how many items have their first event. */
int64_t felrec_apply(const State *state, const Change *change)
{
    int64_t new = 0;
    for (int64_t at = 0; at < change->trend; at++)
        new += (change->first[at] != 0) - (state->trend.first[change->trend_rows[at]] != 0);
    const TopK own = {0, change->own_other, change->own_count, change->own_nth, change->own_minute};
    const TopK near = {0, change->near_other, change->near_count, 0, 0};
    const TopK next = {0, change->next_other, change->next_count, 0, 0};
    const TopK ahead = {0, change->ahead_other, change->ahead_count, 0, 0};
    const int64_t ring = state->users.length * sizeof(int32_t);
    write_rows(state->users.ring, ring, change->user_rows, change->users, change->user_ring);
    write_rows(state->users.count, 8, change->user_rows, change->users, change->user_count);
    write_rows(state->items.ring, ring, change->item_rows, change->items, change->item_ring);
    write_rows(state->items.count, 8, change->item_rows, change->items, change->item_count);
    write_rows(state->trend.mass, HORIZONS * sizeof(float), change->trend_rows, change->trend, change->mass);
    write_rows(state->trend.last, 8, change->trend_rows, change->trend, change->last);
    write_rows(state->trend.first, 8, change->trend_rows, change->trend, change->first);
    write_rows(state->trend.log, 16, change->log_rows, change->log, change->log_values);
    write_counts(&state->own, change->user_rows, change->users, &own);
    write_counts(&state->near, change->near_rows, change->near, &near);
    write_counts(&state->next, change->next_rows, change->next, &next);
    write_counts(&state->ahead, change->ahead_rows, change->ahead, &ahead);
    write_vectors(&state->of_items, state->user_lengths, change->user_rows, change->users, change->user_vectors);
    write_vectors(&state->of_users, state->item_lengths, change->item_rows, change->items, change->item_vectors);
    const Sequence *sequence = &state->sequence;
    if (sequence->width) {
        write_rows(sequence->vectors, sequence->width * sizeof(float), change->sequence_rows, change->sequence,
                   change->sequence_vectors);
        write_rows(state->masses, 2 * sizeof(float), change->sequence_rows, change->sequence, change->sequence_masses);
        const int64_t bytes = sequence->width * sequence->width / 4 * sizeof(float);
        memcpy((float *)state->spread, change->sequence_spread, 2 * bytes);
        memcpy((float *)state->whitening, change->sequence_whitening, change->whitening * bytes);
    }
    if (state->profile)
        memcpy((float *)state->profile, change->profile_means, change->profile * PROFILE * sizeof(float));
    if (state->rates)
        memcpy((float *)state->rates, change->rate_counts, 2 * state->cells * sizeof(float));
    return new;
}
