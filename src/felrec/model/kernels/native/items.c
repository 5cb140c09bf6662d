/* Scores of candidates by the item network, all of them at once: item_scores.py. */

#include "item_network.h"
#include "items.h"

/* Bring items up to date, by their rows: events and scores. Rows that are no candidates are skipped. */
void felrec_score_items(const KeptItems *kept, const int32_t *rows, int64_t count)
{
    for (int64_t at = 0; at < count; at++) {
        const int64_t row = rows[at], column = row < kept->known ? kept->column_of[row] : -1;
        if (column < 0)
            continue;
        const float events = row < kept->item_owners ? (float)kept->item_events[row] : 0;
        float x[ITEM_FEATURES];
        kept->events[column] = events;
        kept->log_events[column] = log1pf(events);
        item_features(&kept->network, row, kept->log_events[column], x);
        kept->scores[column] = item_score(&kept->network, x);
    }
}
