// Rates beside turns: what they give back to a turn that begins, and their record.
#ifndef XCO_CONTROLLER_ENGINE_YIELD_H
#define XCO_CONTROLLER_ENGINE_YIELD_H

#include <stdint.h>

#include "controller/engine/state.h"

// Takes from rates what a new turn needs of its links.
void xco_yield(struct xco_control *core, const struct xco_grant *grant, uint64_t now_ns,
               uint64_t at_ns);

// Notes anew what the links have promised beside turns.
void xco_yield_note(struct xco_control *core, uint64_t now_ns);

#endif
