// Rates outside turns: what they give back to a turn that begins, and their record.
#ifndef XCO_CONTROLLER_ENGINE_YIELD_H
#define XCO_CONTROLLER_ENGINE_YIELD_H

#include <stdint.h>

#include "controller/engine/state.h"

// Reduces rates by what a new turn needs of its links.
void xco_yield(struct xco_control *core, const struct xco_grant *grant, uint64_t now_ns,
               uint64_t at_ns);

// Records again what the links have promised outside turns.
void xco_yield_note(struct xco_control *core, uint64_t now_ns);

#endif
