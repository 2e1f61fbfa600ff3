/* Plain frames are moved many at once, as far as the turn of their source lasts. */
#ifndef ZOVN_SWITCH_PLAIN_H
#define ZOVN_SWITCH_PLAIN_H

#include "switch/queues.h"

/* Return whether a frame that was classified goes as it is where no tag and no mark is added: it lies in one
 * piece, has no tag, and its sender has left nothing to others. */
bool zovn_plain_is(const struct zovn_slot *slot);

/* Move the first frames of a queue that has the turn, at most so many. Return how many: of the next one, also
 * after 0, nothing is known. */
uint32_t zovn_plain_move(struct zovn_switch *vswitch, const struct zovn_place *at, uint32_t most);

#endif
