// The core's published state: counters, gauges, a row for each host.
#ifndef XCO_CONTROLLER_ENGINE_VIEW_H
#define XCO_CONTROLLER_ENGINE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/engine/counters.h"
#include "controller/engine/settings.h"

// Whether memory ran out: the core's state is incomplete; stop and restart.
bool xco_control_failed(const struct xco_control *core);

const struct xco_control_settings *xco_control_settings_of(const struct xco_control *core);
uint32_t xco_control_hosts(const struct xco_control *core);
struct xco_counters *xco_control_counters(struct xco_control *core);

// Fills a host's row of the statistics.
void xco_control_row(const struct xco_control *core, uint32_t host, uint64_t now_ns,
                     uint64_t row[XCO_CONTROLLER_COLUMNS]);

// Counted at each publication: hosts joined, coordinated, links contended.
void xco_control_gauge(struct xco_control *core);

#endif
