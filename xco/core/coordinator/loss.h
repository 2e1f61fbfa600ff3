// The loss of the queues: the interface is left as it would be without a coordinator.
#ifndef XCO_COORDINATOR_LOSS_H
#define XCO_COORDINATOR_LOSS_H

#include "coordinator/state.h"

// Notes that the queues are lost by an error (a negative errno), and removes what is left of them.
void xco_queues_lose(struct xco_coordinator *c, int error);

#endif
