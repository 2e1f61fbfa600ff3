// The coordinator's V2V flows: detects them, creates queues, removes idle ones.
#ifndef XCO_COORDINATOR_NEWCOMERS_H
#define XCO_COORDINATOR_NEWCOMERS_H

#include <stdint.h>

#include "coordinator/state.h"

// Looks for new flows, and gives large ones queues.
void xco_newcomers_scan(struct xco_coordinator *c, int64_t now_ns);

// Removes the queues of idle flows.
void xco_newcomers_sweep(struct xco_coordinator *c, int64_t now_ns);

#endif
