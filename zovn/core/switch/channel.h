/* What one thread passes to another: references, or their ends.
 *
 * One thread puts, and one takes. What is put is seen by the other thread when it is shown. A channel
 * has a place for each reference of a source, and its producer passes a reference again only when
 * its end came back. So it is never full: where the next entry is about to go, the one before it was
 * taken, since among the entries from that one on a reference comes twice. */
#ifndef ZOVN_SWITCH_CHANNEL_H
#define ZOVN_SWITCH_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "switch/cache.h"

struct zovn_passed {
    uint32_t reference;
    uint8_t destination;
    uint8_t reason; /* of its end, as zovn_ended has it */
};

struct zovn_channel {
    _Alignas(ZOVN_LINE) struct zovn_passed *all;
    uint32_t mask;
    _Alignas(ZOVN_LINE) uint32_t put; /* this is the producer's alone */
    _Atomic uint32_t shown;
    _Alignas(ZOVN_LINE) uint32_t taken; /* this is the consumer's alone */
};

/* Return so many channels with places for so many references each; or NULL. */
struct zovn_channel *zovn_channels_new(uint32_t count, uint32_t references);
void zovn_channels_free(struct zovn_channel *channels, uint32_t count);

void zovn_channel_put(struct zovn_channel *channel, struct zovn_passed passed);

/* Show what was put; return whether that was anything. */
bool zovn_channel_show(struct zovn_channel *channel);

/* Take what was put first of what is shown; return false if there is nothing. */
bool zovn_channel_take(struct zovn_channel *channel, struct zovn_passed *passed);

#endif
