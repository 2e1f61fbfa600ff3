// The coordinator's V2V flows: noticed, given queues, removed when idle.
#ifndef XCO_COORDINATOR_NEWCOMERS_H
#define XCO_COORDINATOR_NEWCOMERS_H

#include <stdint.h>

#include "coordinator/state.h"

// Looks for new flows, and gives large ones queues.
void xco_newcomers_scan(struct xco_coordinator *c, int64_t now_ns);

// Removes the queues of flows that are idle.
void xco_newcomers_sweep(struct xco_coordinator *c, int64_t now_ns);

#endif
