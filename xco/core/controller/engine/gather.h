// The flows that get a rate, by the reports of their hosts.
#ifndef XCO_CONTROLLER_ENGINE_GATHER_H
#define XCO_CONTROLLER_ENGINE_GATHER_H

#include <stdbool.h>
#include <stddef.h>

#include "controller/engine/state.h"

// Whether the controller sets the rates of a host.
bool xco_gather_planned(const struct xco_peer *peer);

// Collects all flows that take part into `flows`, by source; returns their number.
size_t xco_gather(struct xco_control *core, uint64_t now_ns);

#endif
