// The coordinator's loop.
#ifndef XCO_COORDINATOR_LOOP_H
#define XCO_COORDINATOR_LOOP_H

#include "coordinator/state.h"

// Runs until it is stopped or `parent` (a pidfd) ends. Returns the program's exit code.
int xco_loop_run(struct xco_coordinator *c, int parent);

#endif
