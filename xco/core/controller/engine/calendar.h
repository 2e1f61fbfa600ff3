// The calendar of links: turns that the scheduler has ended but that still send.
#ifndef XCO_CONTROLLER_ENGINE_CALENDAR_H
#define XCO_CONTROLLER_ENGINE_CALENDAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The rest of a turn on one directed link; `next` ends no later than it.
struct xco_rest {
    uint64_t until_ns;
    uint64_t rate_bps;
    uint64_t renewed_bps; // part of it that the host's next turn takes over on this link
    uint32_t host;
    uint32_t next; // XCO_NONE: the last
};

struct xco_calendar {
    uint32_t *first; // one per directed link: the rest that ends last; XCO_NONE: none
    struct xco_rest *rests;
    uint32_t count;  // number of `rests` ever used
    uint32_t room;
    uint32_t unused; // chain of freed slots
};

// A host that wants to send on a link: `spare_bps` is what the link has beyond its present turns.
struct xco_wish {
    uint32_t host;
    uint64_t at_ns;
    uint64_t spare_bps;
    uint64_t guard_ns; // after the end of another host's turn
};

bool xco_calendar_init(struct xco_calendar *calendar, uint32_t links); // false: out of memory
void xco_calendar_free(struct xco_calendar *calendar);

// Notes that a host sends on a link at a rate until an instant; false: out of memory.
bool xco_calendar_note(struct xco_calendar *calendar, uint32_t link, struct xco_rest rest);

// Notes that a host's next turn uses a link too, at a rate (0: it does not). It begins when the
// rest ends; the link carries only one of them at a time.
void xco_calendar_renew(struct xco_calendar *calendar, uint32_t link, uint32_t host,
                        uint64_t rate_bps);

// Drops a host's rests on a link that end at an instant: the host acknowledged an earlier end.
void xco_calendar_drop(struct xco_calendar *calendar, uint32_t link, uint32_t host,
                       uint64_t until_ns);

// Forgets turns that ended on a link before an instant.
void xco_calendar_forget(struct xco_calendar *calendar, uint32_t link, uint64_t before_ns);

// Returns the first instant, not before the wish's, at which the link carries it next to the rests
// of others. It always waits for the host's own rest: a host sends one turn at a time.
uint64_t xco_calendar_start(const struct xco_calendar *calendar, uint32_t link,
                            const struct xco_wish *wish);

#endif
