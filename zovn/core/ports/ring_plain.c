/* Plain frames into a guest's receive ring, many in one call. */
#include "ports/ring_fill.h"
#include "ports/ring_parts.h"

enum { MOST = 64, AHEAD = 8 }; /* frames: in one go; buffers of so many more are loaded meanwhile */

/* Copy the heads of the next buffers, and begin to load their descriptors; return how many there are. */
static uint32_t find_heads(struct zovn_split_ring *ring, uint16_t *heads, uint32_t most) {
    uint32_t known = zovn_split_ring_known(ring, most), count = known < most ? known : most;
    for (uint32_t i = 0; i < count; i++) {
        int32_t head = zovn_split_ring_head(ring, i);
        if (head < 0)
            return i;
        heads[i] = (uint16_t)head;
        __builtin_prefetch(&ring->descriptors[head]);
    }
    return count;
}

/* Return a buffer in one piece, with room for so many bytes, and begin to load it; NULL for any other one. */
static uint8_t *buffer_of(const struct zovn_split_ring *ring, uint16_t head, uint32_t bytes) {
    struct zovn_segment buffer;
    if (!zovn_chain_one(ring, head, true, &buffer) || buffer.length < bytes)
        return NULL;
    zovn_prefetch_to_write(buffer.bytes);
    zovn_prefetch_to_write(buffer.bytes + 64);
    return buffer.bytes;
}

static void fill(struct zovn_split_ring *ring, uint16_t head, uint8_t *buffer,
                 uint32_t header_bytes, const struct zovn_plain *frame) {
    static const struct zovn_offload NOTHING;
    uint8_t *to = buffer + header_bytes;
    uint32_t bytes = header_bytes + frame->length;
    zovn_ring_write_header(buffer, header_bytes, &NOTHING, 1);
    zovn_ring_copy(to, frame->header, ZOVN_HEADER);
    zovn_ring_copy(to + ZOVN_HEADER, frame->bytes + ZOVN_HEADER, frame->length - ZOVN_HEADER);
    zovn_memory_written(ring->memory, buffer, bytes);
    zovn_split_ring_complete(ring, head, bytes);
}

static uint32_t put(struct zovn_split_ring *ring, uint32_t header_bytes,
                    const struct zovn_plain *frames, uint32_t most) {
    uint16_t heads[MOST];
    uint8_t *buffers[MOST];
    uint32_t count = find_heads(ring, heads, most);
    for (uint32_t i = 0, filled; i < count + AHEAD; i++) {
        if (i < count) {
            buffers[i] = buffer_of(ring, heads[i], header_bytes + frames[i].length);
            if (!buffers[i])
                count = i;
        }
        if (i >= AHEAD) {
            filled = i - AHEAD;
            fill(ring, heads[filled], buffers[filled], header_bytes, &frames[filled]);
        }
    }
    zovn_split_ring_take(ring, count);
    return count;
}

/* After a run that is too short to load its own buffers in time: begin with those of the next ones. */
static void load_next(const struct zovn_split_ring *ring, uint32_t count) {
    for (uint32_t i = 0; count <= ZOVN_RING_AHEAD && i < count; i++)
        zovn_ring_prefetch_buffer(ring, ZOVN_RING_AHEAD - count + i);
}

bool zovn_ring_plain_room(struct zovn_port *port, uint32_t length) {
    struct zovn_ring_port *guest = (struct zovn_ring_port *)port;
    struct zovn_segment buffer;
    return zovn_ring_next_buffer(&guest->pairs[0].rings.receive, port->header_bytes + length,
                                 &buffer) >= 0;
}

/* Only a guest with one pair has this: no flow has a ring of its own. */
uint32_t zovn_ring_put_plain(struct zovn_port *port, const struct zovn_plain *frames,
                             uint32_t count) {
    struct zovn_ring_port *guest = (struct zovn_ring_port *)port;
    struct zovn_split_ring *ring = &guest->pairs[0].rings.receive;
    uint32_t done = put(ring, port->header_bytes, frames, count < MOST ? count : MOST);
    load_next(ring, done);
    zovn_ring_note(port, ring);
    return done;
}
