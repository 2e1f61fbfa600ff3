// Publishes the coordinator's counts.
#ifndef XCO_COORDINATOR_STATISTICS_H
#define XCO_COORDINATOR_STATISTICS_H

#include <stdint.h>

#include "coordinator/state.h"

// Opens the statistics file if the configuration names one; 0 or a negative number.
int xco_coordinator_publish_open(struct xco_coordinator *c);

// Writes the file, and schedules the next write.
void xco_coordinator_publish(struct xco_coordinator *c, int64_t now_ns);

#endif
