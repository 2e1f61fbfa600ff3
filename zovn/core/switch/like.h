/* Frames like one before. Most frames of a sender have few headers: what the switch found for the first of a
 * header holds for the others of a step, unless the table of addresses changes. */
#ifndef ZOVN_SWITCH_LIKE_H
#define ZOVN_SWITCH_LIKE_H

#include "switch/state.h"

/* Return what was found for a frame with the first 14 of these bytes, or NULL. These are read once, here. */
const struct zovn_like *zovn_like_find(struct zovn_switch *vswitch, uint32_t source,
                                       const uint8_t *bytes);

/* Fill in the facts of such a frame, of which its sender says nothing; 4 more bytes are read. */
void zovn_like_facts(struct zovn_facts *facts, const struct zovn_like *like, const uint8_t *bytes,
                     uint32_t length);

/* Note what was found for a frame whose addresses are those that its source recalls, and which may go to its
 * destination. */
void zovn_like_note(struct zovn_member *source, const struct zovn_facts *facts);

#endif
