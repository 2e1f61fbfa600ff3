// Loss of the queues: the interface is left as without a coordinator.
#ifndef XCO_COORDINATOR_LOSS_H
#define XCO_COORDINATOR_LOSS_H

#include "coordinator/state.h"

// Records the loss of the queues by an error (a negative errno), and removes their remains.
void xco_queues_lose(struct xco_coordinator *c, int error);

#endif
