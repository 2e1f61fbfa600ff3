// Compares directives: what one permits, and what it permits beyond another one.
#ifndef XCO_CONTROLLER_ENGINE_DIRECTIVE_H
#define XCO_CONTROLLER_ENGINE_DIRECTIVE_H

#include <stdint.h>

#include "common/message.h"

// What a plan permits to a destination at an instant.
uint64_t xco_directive_rate_at(const struct xco_directive *plan, uint16_t destination,
                               uint64_t at_ns);

// Removes from a plan what it permits beyond another one at an instant: the rest can hold
// immediately.
void xco_directive_clip(struct xco_directive *plan, const struct xco_directive *before,
                        uint64_t at_ns);

#endif
