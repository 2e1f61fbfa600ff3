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
static struct zovn_segment whole_of(const struct zovn_split_ring *ring, uint16_t head,
                                    uint32_t header_bytes) {
    struct zovn_segment whole;
    if (!zovn_chain_one(ring, head, false, &whole) || whole.length < header_bytes + ZOVN_HEADER ||
        whole.length > header_bytes + LONGEST)
        return (struct zovn_segment){0};
    __builtin_prefetch(whole.bytes);
    __builtin_prefetch(whole.bytes + 64);
    return (struct zovn_segment){whole.bytes + header_bytes, whole.length - header_bytes};
}

/* Begin to load the descriptors of the first heads, which are of the same ring; return how many these are. */
static uint32_t load_some(const struct zovn_guest_pair *pair, const uint16_t *heads,
                          uint32_t count) {
    const struct zovn_split_ring *ring = &pair->rings.transmit;
    uint32_t loaded = 0;
    for (; loaded < count && heads[loaded] - pair->first < ring->size; loaded++)
        __builtin_prefetch(&ring->descriptors[heads[loaded] - pair->first]);
    return loaded;
}

static uint32_t find_some(struct zovn_ring_port *guest, const uint16_t *heads, uint32_t count,
                          struct zovn_segment *wholes) {
    const struct zovn_guest_pair *pair = zovn_ring_pair_of(guest, heads[0]);
    const struct zovn_split_ring *ring = &pair->rings.transmit;
    const uint32_t first = pair->first, header_bytes = guest->port.header_bytes;
    count = load_some(pair, heads, count);
    for (uint32_t i = 0; i < count; i++)
        wholes[i] = whole_of(ring, (uint16_t)(heads[i] - first), header_bytes);
    return count;
}

void zovn_ring_find_wholes(struct zovn_port *port, const uint16_t *heads, uint32_t count,
                           struct zovn_segment *wholes) {
    for (uint32_t i = 0; i < count;)
        i += find_some((struct zovn_ring_port *)port, heads + i, count - i, wholes + i);
}
