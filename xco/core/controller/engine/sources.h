// The strategy `gcc`, law `published`: the rates of pairs of hosts, by the marks of ports.
//
// Each peer has the pairs that it is the source of, at most XCO_ENTRIES_MAX. A pair that is inactive
// is forgotten, and begins again at its full share (docs/decisions/0078-the-published-laws-live.md).
#ifndef XCO_CONTROLLER_ENGINE_SOURCES_H
#define XCO_CONTROLLER_ENGINE_SOURCES_H

#include <stddef.h>
#include <stdint.h>

#include "controller/engine/state.h"

// Sets the rates of the flows that send now, which are ordered by source. Once a period it first
// divides each port's new marks equally among the flows through it. Keeps the plan's timer set.
void xco_sources_plan(struct xco_control *core, uint64_t now_ns, struct xco_fill_flow *flows,
                      size_t count);

#endif
