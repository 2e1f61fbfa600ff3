// Timeslices: the scheduler's events and their effects.
#ifndef XCO_CONTROLLER_ENGINE_SLICES_H
#define XCO_CONTROLLER_ENGINE_SLICES_H

#include <stdint.h>

#include "controller/engine/state.h"

// Handles a host's report: what it gave up and its backlog.
void xco_slices_reported(struct xco_control *core, uint64_t now_ns, uint32_t host);

// Ends the timeslice of a host a lead time from now.
void xco_slices_ending(struct xco_control *core, uint64_t now_ns, uint32_t host, uint64_t stamp);

// Removes a host from the schedule; its links are free from `stop_ns` on.
void xco_slices_leave(struct xco_control *core, uint64_t now_ns, uint32_t host, uint64_t stop_ns);

#endif
