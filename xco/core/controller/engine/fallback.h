// Hosts that have fallen back: the capacity that they leave.
#ifndef XCO_CONTROLLER_ENGINE_FALLBACK_H
#define XCO_CONTROLLER_ENGINE_FALLBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/engine/state.h"

bool xco_fallen_init(struct xco_control *core); // false: out of memory

// Notes that a host has fallen back, or has recovered.
void xco_fallen_note(struct xco_control *core, uint32_t host, bool fallen);

// Returns what is left of a rate granted for the whole directed link.
uint64_t xco_fallen_leave(const struct xco_control *core, uint32_t link, uint64_t rate_bps);

// Returns the directive's rate for a grant: what fallen-back hosts leave of it.
uint64_t xco_fallen_told(const struct xco_control *core, const struct xco_grant *grant);

#endif
