/* Plain frames into a guest's receive ring, many in one call. */
#include "ports/ring_fill.h"
#include "ports/ring_parts.h"

static bool put_one(struct zovn_split_ring *ring, uint32_t header_bytes,
                    const struct zovn_plain *frame) {
    static const struct zovn_offload NOTHING;
    uint32_t bytes = header_bytes + frame->length;
    struct zovn_segment buffer;
    int32_t head = zovn_ring_next_buffer(ring, bytes, &buffer);
    if (head < 0)
        return false;
    zovn_ring_prefetch_buffer(ring);
    uint8_t *to = buffer.bytes + header_bytes;
    zovn_ring_write_header(buffer.bytes, header_bytes, &NOTHING, 1);
    zovn_ring_copy(to, frame->header, ZOVN_HEADER);
    zovn_ring_copy(to + ZOVN_HEADER, frame->bytes + ZOVN_HEADER, frame->length - ZOVN_HEADER);
    zovn_ring_filled(ring, head, &buffer, bytes);
    return true;
}

/* Only a guest with one pair has this: no flow has a ring of its own. */
uint32_t zovn_ring_put_plain(struct zovn_port *port, const struct zovn_plain *frames,
                             uint32_t count) {
    struct zovn_ring_port *guest = (struct zovn_ring_port *)port;
    struct zovn_split_ring *ring = &guest->pairs[0].rings.receive;
    uint32_t done = 0;
    while (done < count && put_one(ring, guest->port.header_bytes, &frames[done]))
        done++;
    zovn_ring_note(port, ring);
    return done;
}
