// Addresses behind this host's switch of zovn.
#ifndef XCO_COORDINATOR_STATIONS_H
#define XCO_COORDINATOR_STATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/state.h"

// Prepares to ask it, if the configuration names one; 0 or a negative errno.
int xco_stations_open(struct xco_coordinator *c);

// Asks for all addresses when due, and reads a piece of the answer.
void xco_stations_work(struct xco_coordinator *c, int64_t now_ns);

// Whether the switch has an address, as far as it has been read.
bool xco_stations_have(const struct xco_coordinator *c, const struct xco_place *place);

#endif
