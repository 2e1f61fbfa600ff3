// HyGenICC: rates between hosts without a controller; part of the coordinator's shell.
#ifndef XCO_COORDINATOR_HYGENICC_H
#define XCO_COORDINATOR_HYGENICC_H

#include <stdint.h>

#include "coordinator/state.h"

// Opens the socket to other hosts, if the configuration asks for it, after xco_messages_open and
// xco_marks_open; 0, or a negative errno that has been logged.
int xco_hygenicc_open(struct xco_coordinator *c);

// Takes the messages of other hosts, and where this one has fallen back, counts what arrived, sets
// what the gates may send, refuses connections on congested ways, and writes to others.
void xco_hygenicc_work(struct xco_coordinator *c, int64_t now_ns);

// Returns when the counters are due next; XCO_NEVER: a controller directs, or it is not used.
int64_t xco_hygenicc_due(const struct xco_coordinator *c);

#endif
