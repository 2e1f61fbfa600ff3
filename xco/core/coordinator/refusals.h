// Refuses new connections to hosts on congested ways; part of the coordinator's shell.
#ifndef XCO_COORDINATOR_REFUSALS_H
#define XCO_COORDINATOR_REFUSALS_H

#include <stdint.h>

#include "coordinator/state.h"

// Prepares, if the configuration asks for it, after xco_places_open and once the other hosts are
// known; 0, also where no program can refuse (logged), or -ENOMEM.
int xco_refusals_open(struct xco_coordinator *c);

// Refuses connections by what hosts said last, or admits them.
void xco_refusals_set(struct xco_coordinator *c, int64_t now_ns);

// Admits all connections: what hosts say no longer counts.
void xco_refusals_lift(struct xco_coordinator *c, int64_t now_ns);

// Returns to how many hosts connections are refused now, and how many attempts were, in all.
unsigned xco_refusals_hosts(const struct xco_coordinator *c);
uint64_t xco_refusals_attempts(const struct xco_coordinator *c);

// Whether connections to a host are refused now.
bool xco_refusals_stands(const struct xco_coordinator *c, unsigned host);

#endif
