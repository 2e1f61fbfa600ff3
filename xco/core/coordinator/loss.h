// Loss of the queues: the interface is left as without a coordinator.
#ifndef XCO_COORDINATOR_LOSS_H
#define XCO_COORDINATOR_LOSS_H

#include "coordinator/state.h"

// Logs frames that were lost while an interface's root was exchanged, if there were any.
void xco_queues_say_lost(const char *interface, uint64_t frames);

// Counts those of the queues since the last time, and logs them.
void xco_queues_note_lost(struct xco_coordinator *c);

// Records the loss of the queues by an error (a negative errno), and removes their remains.
void xco_queues_lose(struct xco_coordinator *c, int error);

#endif
