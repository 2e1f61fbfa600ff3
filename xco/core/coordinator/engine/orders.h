// Directives in the host's time: which one holds, and what it permits; part of the core.
#ifndef XCO_COORDINATOR_ENGINE_ORDERS_H
#define XCO_COORDINATOR_ENGINE_ORDERS_H

#include "coordinator/engine/state.h"

// Writes a directive in the host's time; false if it names times and the offset is not known yet.
bool xco_order_of(struct xco_order *order, const struct xco_header *header,
                  const struct xco_directive *directive, const struct xco_clock_sample *offset);

// Obeys an order: at once, or from its start on, until when the one before it goes on.
void xco_order_take(struct xco_core *core, int64_t now_ns, const struct xco_order *order);

// Lets the next order hold once its start has come.
void xco_order_promote(struct xco_core *core, int64_t now_ns);

// Whether a timeslice runs that was not given up.
bool xco_order_in_slice(const struct xco_core *core, int64_t now_ns);

// How a gate is to stand at this time, bits/s; 0: closed.
uint64_t xco_order_rate(const struct xco_core *core, const struct xco_destination *destination,
                        int64_t now_ns);

// Until when the current order leaves a gate open; XCO_NEVER: nothing closes it.
int64_t xco_order_closes(const struct xco_core *core, const struct xco_destination *destination);

#endif
