/* The step, and what it has in common with the removal of a port. */
#ifndef ZOVN_SWITCH_STEP_H
#define ZOVN_SWITCH_STEP_H

#include "switch/state.h"

/* Drop all that comes from a port or waits for it: nothing does any longer. No thread is in a step. */
void zovn_stop(struct zovn_switch *vswitch, uint32_t port, enum zovn_reason reason);

/* Show all peers what was put, and then give their frames back. No thread is in a step. */
void zovn_publish_all(struct zovn_switch *vswitch);

/* See zovn_switch_step_part. */
uint32_t zovn_step(struct zovn_switch *vswitch, uint32_t part, uint64_t now_ns);

#endif
