// Map of addresses to hosts.
#ifndef XCO_COORDINATOR_MAP_H
#define XCO_COORDINATOR_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/state.h"

// Creates the logs; 0 or a negative errno.
int xco_map_open(struct xco_coordinator *c);

// Takes where a station was before this loop began: a controller may say otherwise later.
void xco_map_recall(struct xco_coordinator *c, const struct xco_located *entry);

// Starts over with a controller; takes its messages.
void xco_map_joined(struct xco_coordinator *c, int64_t now_ns);
void xco_map_take(struct xco_coordinator *c, int64_t now_ns, const struct xco_map *message);

// Whether to send the local addresses to the controller now: they count as sent.
bool xco_map_work(struct xco_coordinator *c, int64_t now_ns);

// Forgets addresses that the controller no longer names at hosts of which it has heard all.
void xco_map_sweep(struct xco_coordinator *c);

// Notes an address that is behind this host, or no longer.
void xco_map_here(struct xco_coordinator *c, const struct xco_place *place, bool here);

#endif
