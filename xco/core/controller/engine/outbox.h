// Messages due to hosts, and the core's timers.
#ifndef XCO_CONTROLLER_ENGINE_OUTBOX_H
#define XCO_CONTROLLER_ENGINE_OUTBOX_H

#include <stdint.h>

#include "controller/engine/state.h"

// Queues a host for the messages due to it.
void xco_control_queue(struct xco_control *core, uint32_t host);

// Sets a timer (enum of controller/engine/timers.h).
void xco_control_timer(struct xco_control *core, uint64_t at_ns, uint32_t kind, uint32_t host,
                       uint64_t stamp);

// Announces a plan to a host, in force from the plan's start.
void xco_control_plan(struct xco_control *core, uint32_t host, const struct xco_directive *plan,
                      uint64_t now_ns);

// Ends the host's present directive at an instant, if it would otherwise continue because the next
// one starts later. The caller announces the plan next.
void xco_control_cut(struct xco_control *core, uint32_t host, uint64_t now_ns, uint64_t end_ns);

// Sets a timer for the plan, unless an earlier one is set.
void xco_control_plan_at(struct xco_control *core, uint64_t at_ns);

// Schedules the computation of a plan that holds from an instant on.
void xco_control_dirty(struct xco_control *core, uint64_t from_ns);

// Returns the granted part of a rate: the rest absorbs bursts.
uint64_t xco_control_paced(const struct xco_control *core, uint64_t rate_bps);

#endif
