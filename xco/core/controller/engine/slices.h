// Timeslices: the scheduler's events and what follows from them.
#ifndef XCO_CONTROLLER_ENGINE_SLICES_H
#define XCO_CONTROLLER_ENGINE_SLICES_H

#include <stdint.h>

#include "controller/engine/state.h"

// A host reported what waits: takes up what it gave up and what it is backlogged for.
void xco_slices_reported(struct xco_control *core, uint64_t now_ns, uint32_t host);

// The timeslice of a host ends a lead time from now.
void xco_slices_ending(struct xco_control *core, uint64_t now_ns, uint32_t host, uint64_t stamp);

// A host leaves the schedule; its links are free from `stop_ns` on.
void xco_slices_leave(struct xco_control *core, uint64_t now_ns, uint32_t host, uint64_t stop_ns);

#endif
