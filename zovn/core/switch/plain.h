/* Plain frames, as most are: many are classified and moved at once. */
#ifndef ZOVN_SWITCH_PLAIN_H
#define ZOVN_SWITCH_PLAIN_H

#include "switch/queues.h"

/* Classify what was peeked of a source, as far as it is plain, and like frames before; return how many. */
uint32_t zovn_plain_classify(struct zovn_switch *vswitch, uint32_t source);

/* Return whether a frame that was classified goes as it is where no tag and no mark is added: it lies in one
 * piece, has no tag, and its sender has left nothing to others. */
bool zovn_plain_is(const struct zovn_slot *slot);

/* Move the first frames of a queue that has the turn, at most so many. Return how many: of the next one, also
 * after 0, nothing is known. */
uint32_t zovn_plain_move(struct zovn_switch *vswitch, const struct zovn_place *at, uint32_t most);

#endif
