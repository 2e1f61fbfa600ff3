/* Memory for frames that are flooded: copied once, and kept until the last destination has them. */
#ifndef ZOVN_SWITCH_PARKING_H
#define ZOVN_SWITCH_PARKING_H

#include <stddef.h>

#include "switch/state.h"

#define ZOVN_PARKED_BIT 0x80000000u /* of a reference; below it the frame, and the destination */

static inline struct zovn_parked *zovn_parking_of(const struct zovn_member *source,
                                                  uint32_t reference) {
    if (!(reference & ZOVN_PARKED_BIT))
        return NULL;
    return &source->parked[(reference & ~ZOVN_PARKED_BIT) / ZOVN_MOST_PORTS];
}

static inline uint32_t zovn_parking_destination(uint32_t reference) {
    return (reference & ~ZOVN_PARKED_BIT) % ZOVN_MOST_PORTS;
}

/* Each port has parking of its own, so that one that floods does not stop the floods of others. */
bool zovn_parking_init(struct zovn_member *member, uint32_t frames);
void zovn_parking_free(struct zovn_member *member, uint32_t frames);

/* Copy a frame; return the reference for destination 0, or ZOVN_NONE if there is no room. */
uint32_t zovn_parking_take(struct zovn_member *member, uint32_t frames,
                           const struct zovn_facts *facts, const struct zovn_frame *frame);

/* Of parking that is full: return the reference for destination 0 of the frame that waits for longest. */
uint32_t zovn_parking_oldest(const struct zovn_member *member, uint32_t frames);

/* Remove one of a frame's references; the last one frees it. */
void zovn_parking_leave(struct zovn_member *member, uint32_t reference);

#endif
