// Congestion marks that arrive, counted by source; part of the coordinator's shell.
#ifndef XCO_COORDINATOR_MARKS_H
#define XCO_COORDINATOR_MARKS_H

#include <stdint.h>

#include "coordinator/state.h"

// Loads the shim, if the configuration asks for it; 0, or a negative errno that has been logged.
int xco_marks_open(struct xco_coordinator *c);

// Attaches it to the gated interface, again where that was lost; as xco_marks_open.
int xco_marks_attach(struct xco_coordinator *c);

// Sets the host of an address, or that it is at none.
void xco_marks_place(struct xco_coordinator *c, const struct xco_place *place, uint16_t host);
void xco_marks_displace(struct xco_coordinator *c, const struct xco_place *place);

// Writes the counters of the port that leads to this host; returns whether they are due to be sent.
bool xco_marks_report(struct xco_coordinator *c, int64_t now_ns, struct xco_ports *ports);

// Returns when the counters are due next; XCO_NEVER: the controller's strategy needs none.
int64_t xco_marks_due(const struct xco_coordinator *c);

// Writes what came from each host, and from all others.
void xco_marks_read(const struct xco_coordinator *c, struct xco_arrived *arrived);

// Publishes the counts of all sources that sent something.
void xco_marks_publish(struct xco_coordinator *c, int64_t now_ns);

#endif
