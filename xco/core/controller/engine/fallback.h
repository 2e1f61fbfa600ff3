// Hosts that have fallen back: what they leave of the links.
#ifndef XCO_CONTROLLER_ENGINE_FALLBACK_H
#define XCO_CONTROLLER_ENGINE_FALLBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/engine/state.h"

bool xco_fallen_init(struct xco_control *core); // false: out of memory

// Notes that a host has fallen back, or no longer.
void xco_fallen_note(struct xco_control *core, uint32_t host, bool fallen);

// What is left of a rate that all of a directed link was granted for.
uint64_t xco_fallen_leave(const struct xco_control *core, uint32_t link, uint64_t rate_bps);

// The rate in the directive for a grant: what hosts that have fallen back leave of it.
uint64_t xco_fallen_told(const struct xco_control *core, const struct xco_grant *grant);

#endif
