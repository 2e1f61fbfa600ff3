// Recalls at which host each station was when an earlier loop ended.
#ifndef XCO_COORDINATOR_RECALL_H
#define XCO_COORDINATOR_RECALL_H

#include "coordinator/state.h"

// Reads the file of locations if the configuration names one; after the core has begun, and before
// the first message.
void xco_recall_read(struct xco_coordinator *c);

#endif
