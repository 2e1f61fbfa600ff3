/* New heads of a guest's transmit rings. */
#include <string.h>

#include "ports/ring_parts.h"
#include "rings/chain.h"
#include "rings/inflight.h"

static uint32_t peek_resumed(struct zovn_guest_pair *pair, uint16_t *heads, uint32_t most) {
    uint32_t left = pair->resumed_end - pair->resumed_at, count = left < most ? left : most;
    memcpy(heads, &pair->resumed[pair->resumed_at], count * sizeof *heads);
    pair->resumed_at += count;
    return count;
}

static uint32_t peek_new(struct zovn_split_ring *ring, uint16_t *heads, uint32_t most) {
    uint32_t available = zovn_split_ring_available(ring), count = 0;
    for (; count < most && count < available; count++) {
        int32_t head = zovn_split_ring_head(ring, count);
        if (head < 0)
            break;
        heads[count] = (uint16_t)head;
    }
    for (uint32_t i = 0; ring->inflight && i < count; i++)
        zovn_inflight_take(ring, heads[i]);
    zovn_split_ring_take(ring, count);
    return count;
}

static uint32_t peek_pair(struct zovn_guest_pair *pair, uint16_t *heads, uint32_t most) {
    struct zovn_split_ring *ring = &pair->rings.transmit;
    uint32_t count = pair->resumed_at < pair->resumed_end ? peek_resumed(pair, heads, most)
                                                          : peek_new(ring, heads, most);
    for (uint32_t i = 0; pair->first && i < count; i++)
        heads[i] = (uint16_t)(heads[i] + pair->first);
    return count;
}

/* Another ring is the first one each time: it may have enough for all. */
uint32_t zovn_ring_peek(struct zovn_port *port, uint16_t *heads, uint32_t most) {
    struct zovn_ring_port *guest = (struct zovn_ring_port *)port;
    uint32_t count = 0, at = guest->turn;
    guest->turn = at + 1 < guest->count ? at + 1 : 0;
    for (uint32_t i = 0; i < guest->count; i++) {
        count += peek_pair(&guest->pairs[at], heads + count, most - count);
        zovn_ring_note(port, &guest->pairs[at].rings.transmit);
        at = at + 1 < guest->count ? at + 1 : 0;
    }
    return count;
}

enum { LONGEST = 65535 };

/* What is read here is not read again: it is used, or the frame's chain is walked by `frame`. */
static struct zovn_segment whole_of(struct zovn_ring_port *guest, uint16_t head) {
    const struct zovn_guest_pair *pair = zovn_ring_pair_of(guest, head);
    struct zovn_segment whole;
    if (!zovn_chain_one(&pair->rings.transmit, (uint16_t)(head - pair->first), false, &whole) ||
        whole.length < guest->port.header_bytes + ZOVN_HEADER ||
        whole.length > guest->port.header_bytes + LONGEST)
        return (struct zovn_segment){0};
    __builtin_prefetch(whole.bytes);
    __builtin_prefetch(whole.bytes + 64);
    whole.bytes += guest->port.header_bytes;
    whole.length -= guest->port.header_bytes;
    return whole;
}

void zovn_ring_find_wholes(struct zovn_port *port, const uint16_t *heads, uint32_t count,
                           struct zovn_segment *wholes) {
    struct zovn_ring_port *guest = (struct zovn_ring_port *)port;
    for (uint32_t i = 0; i < count; i++) {
        const struct zovn_guest_pair *pair = zovn_ring_pair_of(guest, heads[i]);
        __builtin_prefetch(&pair->rings.transmit.descriptors[heads[i] - pair->first]);
    }
    for (uint32_t i = 0; i < count; i++)
        wholes[i] = whole_of(guest, heads[i]);
}
