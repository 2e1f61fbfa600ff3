// What pairs of hosts demand: all they can get while something waits, else a little more than they
// use.
#ifndef XCO_CONTROLLER_ENGINE_DEMANDS_H
#define XCO_CONTROLLER_ENGINE_DEMANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/engine/state.h"

// Notes a host's new report.
void xco_demands_note(struct xco_peer *peer, uint64_t now_ns);

// Returns the demand of a pair in the last report; XCO_FILL_GREEDY: all it can get.
uint64_t xco_demands_of(const struct xco_peer *peer, const struct xco_waiting *entry,
                        uint64_t now_ns);

// Whether a pair ceased to be greedy after `since_ns`, which no report tells.
bool xco_demands_ended(const struct xco_peer *peer, uint64_t since_ns, uint64_t now_ns);

#endif
