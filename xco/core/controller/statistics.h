// Publishes the controller's counters and a row for each host.
#ifndef XCO_CONTROLLER_STATISTICS_H
#define XCO_CONTROLLER_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/state.h"

// Opens the statistics file if the configuration names one; false: `problem` says why it failed.
bool xco_controller_publish_open(struct xco_shell *shell, char problem[XCO_CONFIG_PROBLEM_BYTES]);

// Writes the file, and schedules the next write.
void xco_controller_publish(struct xco_shell *shell, uint64_t now_ns);

#endif
