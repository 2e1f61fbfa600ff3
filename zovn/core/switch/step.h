/* What a step and the removal of a port have in common. */
#ifndef ZOVN_SWITCH_STEP_H
#define ZOVN_SWITCH_STEP_H

#include "switch/state.h"

/* Drop all that comes from a port or waits for it: nothing does any longer. */
void zovn_stop(struct zovn_switch *vswitch, uint32_t port, enum zovn_reason reason);

/* Show all peers what was put, and then give their frames back. */
void zovn_publish(struct zovn_switch *vswitch);

#endif
