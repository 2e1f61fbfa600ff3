// The guard of the coordinator's loop.
#ifndef XCO_COORDINATOR_GUARD_H
#define XCO_COORDINATOR_GUARD_H

#include "coordinator/state.h"

// Runs the loop in a child and outlives it: removes the tree if the loop is killed or hangs.
// Returns the program's exit code.
int xco_guard_run(struct xco_coordinator *c);

#endif
