// The coordinator's messages to and from the controllers.
#ifndef XCO_COORDINATOR_MESSAGES_H
#define XCO_COORDINATOR_MESSAGES_H

#include <stdint.h>

#include "coordinator/state.h"

// Opens the socket; 0 or a negative errno.
int xco_messages_open(struct xco_coordinator *c);

// Takes all messages that arrived.
void xco_messages_take(struct xco_coordinator *c);

// Sends a message to every controller: what waits, the wish to join, what is behind this host, goodbye.
void xco_messages_report(struct xco_coordinator *c);
void xco_messages_hello(struct xco_coordinator *c);
void xco_messages_places(struct xco_coordinator *c);
void xco_messages_leave(struct xco_coordinator *c);

// The highest epoch that was kept, or 0.
uint64_t xco_messages_epoch(const struct xco_coordinator *c);

// An epoch is kept by now: what waited for that is obeyed.
void xco_messages_kept(struct xco_coordinator *c);

#endif
