/* How a frame ends: delivered, or dropped for a reason. */
#ifndef ZOVN_SWITCH_OUTCOME_H
#define ZOVN_SWITCH_OUTCOME_H

#include "switch/queues.h"

/* Count a reference of a source as dropped, or with ZOVN_REASONS as delivered, and give its memory
 * back. */
void zovn_end(struct zovn_member *source, uint32_t reference, enum zovn_reason reason);

/* The same of one that has left its destination's queue: the thread that has the source counts it. */
void zovn_ended(struct zovn_switch *vswitch, const struct zovn_place *at, uint32_t reference,
                enum zovn_reason reason);

/* The same of frames that were delivered, and of which none was parked. */
void zovn_delivered(struct zovn_switch *vswitch, const struct zovn_place *at, const uint16_t *heads,
                    uint32_t count);

/* Drop all that waits for a destination. */
void zovn_drop_to(struct zovn_switch *vswitch, uint32_t destination, uint32_t classes,
                  enum zovn_reason reason);

/* Drop all copies of a parked frame, by its reference for destination 0. */
void zovn_drop_parked(struct zovn_switch *vswitch, uint32_t source, uint32_t reference,
                      enum zovn_reason reason);

/* Drop all that comes from a source, and give back what it offers. */
void zovn_drop_from(struct zovn_switch *vswitch, uint32_t source, enum zovn_reason reason);

#endif
