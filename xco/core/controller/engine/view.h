// What the core shows of itself: counters, gauges, a row for each host.
#ifndef XCO_CONTROLLER_ENGINE_VIEW_H
#define XCO_CONTROLLER_ENGINE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/engine/counters.h"
#include "controller/engine/settings.h"

// Memory ran out, and what the core knows is not whole: stop and start again.
bool xco_control_failed(const struct xco_control *core);

const struct xco_control_settings *xco_control_settings_of(const struct xco_control *core);
uint32_t xco_control_hosts(const struct xco_control *core);
struct xco_counters *xco_control_counters(struct xco_control *core);

// What a host's row of the statistics says.
void xco_control_row(const struct xco_control *core, uint32_t host, uint64_t now_ns,
                     uint64_t row[XCO_CONTROLLER_COLUMNS]);

// What is counted anew at each publication: hosts joined, coordinated, links contended.
void xco_control_gauge(struct xco_control *core);

#endif
