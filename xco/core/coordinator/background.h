// Permission for background work.
#ifndef XCO_COORDINATOR_BACKGROUND_H
#define XCO_COORDINATOR_BACKGROUND_H

#include "coordinator/state.h"

// Returns when it may begin: now, or when the next gate has been set.
int64_t xco_background_from(const struct xco_coordinator *c, int64_t now_ns);

// Whether a piece of it may continue after so many entries.
bool xco_background_goes_on(const struct xco_coordinator *c, unsigned done);

#endif
