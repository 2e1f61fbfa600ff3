// Rates: the strategies `rate` and `gcc`, and what `hybrid` hands out where slices leave it free.
#ifndef XCO_CONTROLLER_ENGINE_RATES_H
#define XCO_CONTROLLER_ENGINE_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/engine/state.h"

// Computes the rates of all flows that take part, and announces changes to hosts.
void xco_rates_plan(struct xco_control *core, uint64_t now_ns);

// Returns what of a link is handed out as rates: what turns, or foreign traffic, leave.
uint64_t xco_rates_left(const struct xco_control *core, uint32_t link, uint64_t now_ns);

// Whether a rate is worth a directive to a host.
bool xco_rates_worth(const struct xco_control *core, uint32_t host, uint64_t rate_bps);

#endif
