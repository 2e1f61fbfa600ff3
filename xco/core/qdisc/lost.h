// Frames that are lost while the root of an interface is exchanged, or its clsact comes or goes.
//
// The kernel stops all queues of the interface for both. It drops what is sent meanwhile: the sender
// gets no error, and the interface's count of dropped frames has them from Linux 6.11 on. It frees
// what waits in the queues, and no count of the kernel has that.
#ifndef XCO_QDISC_LOST_H
#define XCO_QDISC_LOST_H

#include <stdint.h>

#include "qdisc/connection.h"

// What can be lost from now on, and what was dropped before.
struct xco_stake {
    uint64_t waiting, dropped;
};

// Reads both before an exchange.
struct xco_stake xco_stake_read(struct xco_gate *gate);

// Adds to `gate->lost` what an exchange has lost. A frame that left between the reading and the
// exchange counts as well, and so does one that the interface itself dropped.
void xco_stake_lose(struct xco_gate *gate, const struct xco_stake *before);

#endif
