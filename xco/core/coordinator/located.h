// Publishes at which other host each MAC address is, for the file that zovn's wires read.
#ifndef XCO_COORDINATOR_LOCATED_H
#define XCO_COORDINATOR_LOCATED_H

#include "coordinator/state.h"

// Creates the file if the configuration names one; 0 or a negative errno.
int xco_located_open(struct xco_coordinator *c);

// Publishes where an address is after its log has changed: one row, whatever the number of addresses.
void xco_located_note(struct xco_coordinator *c, const struct xco_place *place);

// Publishes that the controller has named all addresses.
void xco_located_complete(struct xco_coordinator *c);

#endif
