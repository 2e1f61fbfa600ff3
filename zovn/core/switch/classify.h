/* New frames of a source: classified once, and queued for their destinations. */
#ifndef ZOVN_SWITCH_CLASSIFY_H
#define ZOVN_SWITCH_CLASSIFY_H

#include "switch/state.h"

/* Take up to a batch; a frame that cannot be parked stays, and so do those behind it. Return how
 * many were taken. */
uint32_t zovn_classify(struct zovn_switch *vswitch, uint32_t source);

/* Learn that the sender of a frame, which did not come from a ring, is behind a port. */
void zovn_learn(struct zovn_switch *vswitch, uint32_t port, const struct zovn_facts *facts);

#endif
