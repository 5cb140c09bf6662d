/* What the item network says of items, and the upper bounds of their scores: trend.py, item_scores.py and
 * compiled_scores.py. The result for an item does not depend on the others that are computed with it. */

#include <stdlib.h>
#include <string.h>

#include "items.h"
#include "lanes.h"
#include "trend.h"

static const float BACKGROUND = 1e-6f; /* share of all events that an item without any is assumed to have */
static const float SLACK = 1e-5f;      /* relative: a bound must also hold for scores that were rounded on the way */

/* Items of the events since the last moment. */
typedef struct {
    int32_t items[PACE];
    int64_t count;
} Since;

INLINE Since events_since(const Trend *trend)
{
    Since since = {.count = 0};
    for (int64_t row = 1; row < PACE; row++)
        if (trend->log[2 * row] > trend->log[1])
            since.items[since.count++] = (int32_t)trend->log[2 * row + 1];
    return since;
}

/* Features of an item, as trend.py names them: log count, log decayed counts, perhaps the trusted share, log age. */
INLINE void item_features(const ItemNetwork *network, const Since *since, const float *totals, int64_t item,
                          float log_events, float *x)
{
    const Trend *trend = &network->trend;
    const int known = item < trend->rows;
    const int64_t first = known ? trend->first[item] : 0, age = trend->log[1] + 1 - first;
    const float passed = known && trend->log[1] > trend->last[item] ? (float)(trend->log[1] - trend->last[item]) : 0;
    float fresh = 0, trusted = 0;
    for (int64_t at = 0; at < since->count; at++)
        fresh += since->items[at] == item;
    lanes decay = {0}, mass = {0};
    for (int horizon = 0; horizon < HORIZONS; horizon++) {
        decay[horizon] = -passed / HALF_LIVES[horizon] * 0.693147181f;
        mass[horizon] = known ? trend->mass[item * HORIZONS + horizon] : 0;
    }
    mass = mass * exponential(decay) + fresh;
    for (int horizon = 0; network->horizons && horizon < HORIZONS; horizon++)
        trusted += mass[horizon] / totals[horizon] * network->horizons[horizon];
    lanes grown = mass * 10.0f + 1.0f;
    grown[HORIZONS] = trusted / BACKGROUND + 1;
    grown[HORIZONS + 1] = first > 0 ? 1 + (float)(age > 1 ? age : 1) : 1;
    grown = logarithm(grown);
    x[0] = log_events;
    for (int horizon = 0; horizon < HORIZONS; horizon++)
        x[1 + horizon] = grown[horizon];
    if (network->horizons)
        x[1 + HORIZONS] = grown[HORIZONS] / 2;
    x[network->features - 1] = grown[HORIZONS + 1] / 5;
}

/* Scores (ROWS) by features (ROWS, features). Always so many rows: then each is computed in the same way. */
INLINE void network_scores(const ItemNetwork *network, const float *x, float *inner, float *scores)
{
    const int64_t features = network->features, hidden = network->hidden;
    for (int row = 0; row < ROWS; row++)
        memcpy(inner + row * hidden, network->bias, hidden * sizeof(float));
    add_product(ROWS, x, features, features, network->first, hidden, hidden, inner, hidden);
    for (int64_t at = 0; at < ROWS * hidden; at++)
        inner[at] = inner[at] > 0 ? inner[at] : 0;
    for (int row = 0; row < ROWS; row++)
        scores[row] = dot(inner + row * hidden, network->last, hidden) + network->last_bias +
                      dot(x + row * features, network->slopes, features);
}

INLINE void bound_item(const KeptItems *kept, int64_t column)
{
    const int64_t row = kept->rows[column];
    const float events = kept->events[column], log_events = kept->log_events[column], score = kept->scores[column];
    float trust = 0, reach = 0;
    if (kept->lengths) {
        trust = kept->scale / (1 + expf(-(kept->certain + kept->per_log_event * log_events)));
        reach = row < kept->lengths_count ? trust * kept->lengths[row] : 0;
    }
    kept->items[column] = (Item){score, trust, log_events, 1 / sqrtf(events + 1)};
    kept->upper[column] = events > 0 ? score + reach + SLACK * (1 + fabsf(score) + reach) : -INFINITY;
}

/* The highest bound of the items of a chunk. */
INLINE void bound_chunk(const KeptItems *kept, int64_t chunk)
{
    float top = -INFINITY;
    for (int64_t column = chunk * CHUNK; column < (chunk + 1) * CHUNK && column < kept->count; column++)
        top = kept->upper[column] > top ? kept->upper[column] : top;
    kept->tops[chunk] = top;
}

/* Compute the bounds of all items. */
ANY_PROCESSOR void felrec_bound_items(const KeptItems *kept)
{
    for (int64_t column = 0; column < kept->count; column++)
        bound_item(kept, column);
    for (int64_t chunk = 0; chunk * CHUNK < kept->count; chunk++)
        bound_chunk(kept, chunk);
}

INLINE void look_up_events(const KeptItems *kept, int64_t row, int64_t column)
{
    const float events = row < kept->item_owners ? (float)kept->item_events[row] : 0;
    kept->events[column] = events;
    kept->log_events[column] = log1pf(events);
}

/* Bring items up to date, by their rows: events, scores and, if they are kept, bounds. Rows that are no candidates are
 * skipped. Returns 0, or 1 if there is not enough memory. */
ANY_PROCESSOR int felrec_renew_items(const ItemNetwork *network, const KeptItems *kept, const int32_t *rows,
                                     int64_t count)
{
    float totals[HORIZONS], scores[ROWS];
    float *x = calloc(ROWS * network->features + 1, sizeof(float));
    float *inner = malloc((ROWS * network->hidden + 1) * sizeof(float));
    const int enough = x && inner, scored = network->hidden > 0;
    Since since = {.count = 0};
    if (scored) {
        since = events_since(&network->trend);
        for (int horizon = 0; horizon < HORIZONS; horizon++)
            totals[horizon] = total_count(&network->trend, horizon);
    }
    for (int64_t at = 0; enough && at < count;) {
        int64_t columns[ROWS], together = 0;
        for (; together < ROWS && at < count; at++) {
            const int64_t column = rows[at] < kept->known ? kept->column_of[rows[at]] : -1;
            if (column < 0)
                continue;
            look_up_events(kept, rows[at], column);
            if (scored)
                item_features(network, &since, totals, rows[at], kept->log_events[column],
                              x + together * network->features);
            columns[together++] = column;
        }
        if (scored)
            network_scores(network, x, inner, scores);
        for (int64_t nth = 0; nth < together; nth++) {
            kept->scores[columns[nth]] = scored ? scores[nth] : 0;
            if (kept->items) {
                bound_item(kept, columns[nth]);
                bound_chunk(kept, columns[nth] / CHUNK);
            }
        }
    }
    free(x);
    free(inner);
    return !enough;
}
