// Directives in the host's time: which one is in force, and what it permits; part of the core.
#ifndef XCO_COORDINATOR_ENGINE_ORDERS_H
#define XCO_COORDINATOR_ENGINE_ORDERS_H

#include "coordinator/engine/state.h"

// Writes a directive in the host's time; false if it names times and the offset is not known yet.
bool xco_order_of(struct xco_order *order, const struct xco_header *header,
                  const struct xco_directive *directive, const struct xco_clock_sample *offset);

// Obeys an order: immediately, or from its start on; until then the previous one stays in force.
void xco_order_take(struct xco_core *core, int64_t now_ns, const struct xco_order *order);

// Puts the next order in force once its start has come.
void xco_order_promote(struct xco_core *core, int64_t now_ns);

// Whether a timeslice runs that was not given up.
bool xco_order_in_slice(const struct xco_core *core, int64_t now_ns);

// Returns a gate's setting at this time, bits/s; 0: closed.
uint64_t xco_order_rate(const struct xco_core *core, const struct xco_destination *destination,
                        int64_t now_ns);

// Returns the rate to a destination that cannot congest a link, even if all hosts send.
uint64_t xco_order_safe(const struct xco_core *core, const struct xco_destination *destination);

// Returns until when the current order leaves a gate open; XCO_NEVER: no end.
int64_t xco_order_closes(const struct xco_core *core, const struct xco_destination *destination);

#endif
