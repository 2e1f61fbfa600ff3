// A heap of instants: what to check next, and for which host.
#ifndef XCO_CONTROLLER_ENGINE_TIMERS_H
#define XCO_CONTROLLER_ENGINE_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum xco_timer_kind {
    XCO_TIMER_SLICE = 0, // a timeslice is about to end
    XCO_TIMER_CARE = 1,  // a heartbeat is due, or a host was silent for too long
    XCO_TIMER_PLAN = 2,  // recompute rates or contention
};

// Timers are not cancelled; the receiver drops an outdated one, by `stamp`.
struct xco_timer {
    uint64_t at_ns;
    uint64_t stamp;
    uint32_t host;
    uint32_t kind;
};

struct xco_timers {
    struct xco_timer *heap;
    size_t count;
    size_t room;
};

bool xco_timers_add(struct xco_timers *timers, struct xco_timer timer); // false: out of memory
bool xco_timers_take_due(struct xco_timers *timers, uint64_t now_ns, struct xco_timer *due);
uint64_t xco_timers_next(const struct xco_timers *timers); // UINT64_MAX: none
void xco_timers_free(struct xco_timers *timers);

#endif
