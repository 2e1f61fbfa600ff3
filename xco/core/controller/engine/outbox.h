// What hosts are to be told, and when the core is to act again.
#ifndef XCO_CONTROLLER_ENGINE_OUTBOX_H
#define XCO_CONTROLLER_ENGINE_OUTBOX_H

#include <stdint.h>

#include "controller/engine/state.h"

// Has a host be told what is due to it.
void xco_control_queue(struct xco_control *core, uint32_t host);

// Sets a timer (enum of controller/engine/timers.h).
void xco_control_timer(struct xco_control *core, uint64_t at_ns, uint32_t kind, uint32_t host,
                       uint64_t stamp);

// Tells a host a plan, from the plan's start on.
void xco_control_plan(struct xco_control *core, uint32_t host, const struct xco_directive *plan,
                      uint64_t now_ns);

// Ends what the host obeys now at an instant, where it would go on beyond that because what it is
// told next starts later. Its plan is to follow.
void xco_control_cut(struct xco_control *core, uint32_t host, uint64_t now_ns, uint64_t end_ns);

// Sets a timer for the plan, unless an earlier one is set.
void xco_control_plan_at(struct xco_control *core, uint64_t at_ns);

// Has the plan be computed, to hold from an instant on.
void xco_control_dirty(struct xco_control *core, uint64_t from_ns);

// Returns the part of a rate that is granted: what is left absorbs bursts.
uint64_t xco_control_paced(const struct xco_control *core, uint64_t rate_bps);

#endif
