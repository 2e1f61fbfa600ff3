// The coordinator's queues: creates, opens and closes, reads them.
#ifndef XCO_COORDINATOR_QUEUES_H
#define XCO_COORDINATOR_QUEUES_H

#include <stddef.h>
#include <stdint.h>

#include "coordinator/engine/decide.h"
#include "coordinator/state.h"
#include "common/exit.h"

// Creates the tree, or recreates it with all flows; 0 or a negative errno.
int xco_queues_make(struct xco_coordinator *c, int64_t now_ns);

// Sets the gates that commands name.
void xco_queues_set(struct xco_coordinator *c, const struct xco_command *commands, size_t count);

// Asks the kernel for the backlog of the gates that are due.
void xco_queues_look(struct xco_coordinator *c, int64_t now_ns);

// Tells the watch which flows to ignore.
void xco_queues_except(struct xco_coordinator *c);

// Logs why the tree cannot be created, and returns the exit code for it.
enum xco_exit xco_queues_explain(const struct xco_coordinator *c, int error);

#endif
