// Keeps the rests of turns for each link, in descending order of their ends.
#include "controller/engine/calendar.h"

#include <stdlib.h>

#include "scheduler/schedule.h"

bool xco_calendar_init(struct xco_calendar *calendar, uint32_t links) {
    *calendar = (struct xco_calendar){.unused = XCO_NONE};
    calendar->first = malloc(((size_t)links + 1) * sizeof *calendar->first);
    for (uint32_t link = 0; calendar->first != NULL && link < links; link++) {
        calendar->first[link] = XCO_NONE;
    }
    return calendar->first != NULL;
}

void xco_calendar_free(struct xco_calendar *calendar) {
    free(calendar->first);
    free(calendar->rests);
    *calendar = (struct xco_calendar){0};
}

static bool grow(struct xco_calendar *calendar) {
    const uint32_t room = calendar->room == 0 ? 256 : 2 * calendar->room;
    struct xco_rest *rests = realloc(calendar->rests, room * sizeof *rests);
    if (rests == NULL) {
        return false;
    }
    calendar->rests = rests;
    calendar->room = room;
    return true;
}

// Returns a free slot; XCO_NONE: out of memory.
static uint32_t take_place(struct xco_calendar *calendar) {
    const uint32_t place = calendar->unused;
    if (place != XCO_NONE) {
        calendar->unused = calendar->rests[place].next;
        return place;
    }
    if (calendar->count == calendar->room && !grow(calendar)) {
        return XCO_NONE;
    }
    return calendar->count++;
}

bool xco_calendar_note(struct xco_calendar *calendar, uint32_t link, struct xco_rest rest) {
    const uint32_t place = take_place(calendar);
    if (place == XCO_NONE) {
        return false;
    }
    uint32_t *at = &calendar->first[link];
    while (*at != XCO_NONE && calendar->rests[*at].until_ns > rest.until_ns) {
        at = &calendar->rests[*at].next;
    }
    rest.next = *at;
    calendar->rests[place] = rest;
    *at = place;
    return true;
}

void xco_calendar_renew(struct xco_calendar *calendar, uint32_t link, uint32_t host,
                        uint64_t rate_bps) {
    for (uint32_t i = calendar->first[link]; i != XCO_NONE; i = calendar->rests[i].next) {
        struct xco_rest *rest = &calendar->rests[i];
        if (rest->host == host) {
            rest->renewed_bps = rate_bps < rest->rate_bps ? rate_bps : rest->rate_bps;
        }
    }
}

void xco_calendar_drop(struct xco_calendar *calendar, uint32_t link, uint32_t host,
                       uint64_t until_ns) {
    uint32_t *at = &calendar->first[link];
    while (*at != XCO_NONE) {
        const uint32_t place = *at;
        struct xco_rest *rest = &calendar->rests[place];
        if (rest->host == host && rest->until_ns == until_ns) {
            *at = rest->next;
            rest->next = calendar->unused;
            calendar->unused = place;
        } else {
            at = &rest->next;
        }
    }
}

void xco_calendar_forget(struct xco_calendar *calendar, uint32_t link, uint64_t before_ns) {
    uint32_t *at = &calendar->first[link];
    while (*at != XCO_NONE && calendar->rests[*at].until_ns >= before_ns) {
        at = &calendar->rests[*at].next;
    }
    uint32_t place = *at;
    *at = XCO_NONE;
    while (place != XCO_NONE) {
        const uint32_t next = calendar->rests[place].next;
        calendar->rests[place].next = calendar->unused;
        calendar->unused = place;
        place = next;
    }
}

uint64_t xco_calendar_start(const struct xco_calendar *calendar, uint32_t link,
                            const struct xco_wish *wish) {
    uint64_t start_ns = wish->at_ns;
    uint64_t taken_bps = 0;
    for (uint32_t i = calendar->first[link]; i != XCO_NONE; i = calendar->rests[i].next) {
        const struct xco_rest *rest = &calendar->rests[i];
        const bool own = rest->host == wish->host;
        const uint64_t end_ns = rest->until_ns + (own ? 0 : wish->guard_ns);
        taken_bps += own || end_ns <= start_ns ? 0 : rest->rate_bps - rest->renewed_bps;
        const bool full = taken_bps > wish->spare_bps;
        start_ns = (own || full) && end_ns > start_ns ? end_ns : start_ns;
        if (full) {
            break; // the others end earlier
        }
    }
    return start_ns;
}
