// Addresses behind this host's bridge.
#ifndef XCO_COORDINATOR_BRIDGE_H
#define XCO_COORDINATOR_BRIDGE_H

#include <stdint.h>

#include "coordinator/state.h"

// Opens its socket; 0 or a negative errno.
int xco_bridge_open(struct xco_coordinator *c);

// Reads a piece of the kernel's messages, and requests the whole table when due.
void xco_bridge_work(struct xco_coordinator *c, int64_t now_ns);

#endif
