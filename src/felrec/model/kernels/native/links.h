/* Items that an event links: item_links.py, together.py and follows.py. */

#ifndef FELREC_LINKS_H
#define FELREC_LINKS_H

#include "top_k.h"

enum { WINDOW = 10, SOON = 6 }; /* newest items of a user that an event is linked with, and comes soon after */

/* Whether an item was already taken close to the event's item. */
INLINE int met_before(const int32_t *history, int64_t taken, int32_t item, int32_t other)
{
    for (int64_t at = 0; at < taken; at++) {
        if (history[at] != item)
            continue;
        const int64_t begin = at > WINDOW ? at - WINDOW : 0, end = at + WINDOW < taken ? at + WINDOW + 1 : taken;
        for (int64_t near = begin; near < end; near++)
            if (history[near] == other)
                return 1;
    }
    return 0;
}

/* Both directions between the item and the user's last ten items; returns how many links. */
INLINE int64_t links_together(const int32_t *history, int64_t taken, int32_t item, int again, Key *links)
{
    int64_t count = 0;
    for (int64_t at = taken > WINDOW ? taken - WINDOW : 0; at < taken; at++) {
        const int32_t other = history[at];
        if (other == item)
            links[count++] = (Key){meeting(item, item), 0}; /* with itself once */
        else if (!again || !met_before(history, taken, item, other)) {
            links[count++] = (Key){meeting(other, item), 0};
            links[count++] = (Key){meeting(item, other), 0};
        }
    }
    return count;
}

/* From the user's last item to this one. */
INLINE int64_t links_following(const int32_t *history, int64_t taken, int32_t item, int again, Key *links)
{
    const int32_t last = taken ? history[taken - 1] : NOTHING;
    if (!taken || (again && last != item && met_before(history, taken, item, last)))
        return 0;
    links[0] = (Key){meeting(last, item), 0};
    return 1;
}

/* From each of the user's last six items to this one; returns how many links. */
INLINE int64_t links_ahead(const int32_t *history, int64_t taken, int32_t item, int again, Key *links)
{
    int64_t count = 0;
    for (int64_t at = taken > SOON ? taken - SOON : 0; at < taken; at++)
        if (!again || history[at] == item || !met_before(history, taken, item, history[at]))
            links[count++] = (Key){meeting(history[at], item), 0};
    return count;
}

#endif
