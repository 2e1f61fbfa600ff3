// The coordinator's queues: made, opened and closed, looked at.
#ifndef XCO_COORDINATOR_QUEUES_H
#define XCO_COORDINATOR_QUEUES_H

#include <stddef.h>
#include <stdint.h>

#include "coordinator/engine/decide.h"
#include "coordinator/state.h"
#include "common/exit.h"

// Makes the tree, or makes it anew with all flows; 0 or a negative errno.
int xco_queues_make(struct xco_coordinator *c, int64_t now_ns);

// Sets the gates that commands name.
void xco_queues_set(struct xco_coordinator *c, const struct xco_command *commands, size_t count);

// Asks the kernel what waits behind the gates that are due.
void xco_queues_look(struct xco_coordinator *c, int64_t now_ns);

// Tells the watch which flows need no watching.
void xco_queues_except(struct xco_coordinator *c);

// Says why the tree cannot be made, and returns the exit code for it.
enum xco_exit xco_queues_explain(const struct xco_coordinator *c, int error);

#endif
