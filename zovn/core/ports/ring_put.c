/* Frames into a guest's receive rings: one buffer, or several that are merged (5.1.6.4). */
#include "ports/flow.h"
#include "ports/ring_fill.h"
#include "ports/ring_parts.h"

enum { MOST_BUFFERS = ZOVN_MOST_SEGMENTS, HEADER_BYTES = 12 };
enum { MOST_BAD = 8 }; /* tries in a step that find a bad buffer; the rest in the next one */

/* Receive buffers that are looked at, but not taken. */
struct gathered {
    uint32_t buffers;
    uint32_t count; /* of segments */
    uint64_t bytes;
    uint16_t heads[MOST_BUFFERS];
    uint64_t sizes[MOST_BUFFERS];
    struct zovn_segment segments[ZOVN_MOST_SEGMENTS];
};

enum outcome { GATHERED, NO_ROOM, NEVER, BAD_BUFFER };

static enum outcome gather_one(struct zovn_ring_port *guest, struct zovn_split_ring *ring,
                               struct gathered *to) {
    int32_t head = zovn_split_ring_head(ring, to->buffers);
    if (head < 0)
        return NO_ROOM;
    struct zovn_segment *segments = &to->segments[to->count];
    to->heads[to->buffers] = (uint16_t)head;
    int32_t count =
        zovn_chain(ring, (uint16_t)head, true, segments, ZOVN_MOST_SEGMENTS - to->count);
    uint64_t bytes = 0;
    for (int32_t i = 0; i < count; i++)
        bytes += segments[i].length;
    to->sizes[to->buffers++] = bytes;
    to->bytes += bytes;
    to->count += count < 0 ? 0 : (uint32_t)count;
    return count < 0 || bytes < guest->port.header_bytes ? BAD_BUFFER : GATHERED;
}

/* Without merging one buffer must do. A ring that is all available will not get more. */
static enum outcome gather(struct zovn_ring_port *guest, struct zovn_split_ring *ring,
                           struct gathered *to, uint32_t needed) {
    to->buffers = to->count = 0;
    to->bytes = 0;
    uint32_t available = zovn_split_ring_available(ring);
    uint32_t most = guest->mergeable ? MOST_BUFFERS : 1;
    while (to->bytes < needed) {
        if (to->buffers == most || to->buffers == ring->size || to->count == ZOVN_MOST_SEGMENTS)
            return NEVER;
        if (to->buffers == available)
            return NO_ROOM;
        enum outcome outcome = gather_one(guest, ring, to);
        if (outcome != GATHERED)
            return outcome;
    }
    return GATHERED;
}

/* Take the buffers; each is filled but for the last one. */
static void take(struct zovn_split_ring *ring, const struct gathered *from, uint64_t bytes) {
    for (uint32_t i = 0; i < from->buffers; i++) {
        uint64_t written = bytes < from->sizes[i] ? bytes : from->sizes[i];
        zovn_split_ring_complete(ring, from->heads[i], (uint32_t)written);
        bytes -= written;
    }
    zovn_split_ring_take(ring, from->buffers);
}

/* The guest's mistake: it gets the buffers back empty, and the next ones are tried. It may add bad
 * ones as fast as they go back, and all other ports wait meanwhile, so there is an end. */
static enum outcome gather_good(struct zovn_ring_port *guest, struct zovn_split_ring *ring,
                                struct gathered *to, uint32_t needed) {
    enum outcome outcome;
    while ((outcome = gather(guest, ring, to, needed)) == BAD_BUFFER) {
        if (guest->bad_in_step == MOST_BAD)
            return NO_ROOM;
        guest->bad_in_step++;
        guest->bad_buffers += to->buffers;
        take(ring, to, 0);
    }
    return outcome;
}

static void log_copied(const struct zovn_memory *memory, const struct gathered *to,
                       uint64_t bytes) {
    for (uint32_t i = 0; memory->log && bytes; i++) {
        uint64_t part = bytes < to->segments[i].length ? bytes : to->segments[i].length;
        zovn_memory_log(memory, to->segments[i].bytes, part);
        bytes -= part;
    }
}

static uint32_t pair_for(const struct zovn_ring_port *guest, const struct zovn_frame *frame) {
    return guest->count == 1 ? 0 : zovn_flow_queue(frame, guest->count);
}

static void copy_to_one(uint8_t *to, const struct zovn_frame *frame) {
    for (uint32_t i = frame->first; i < frame->end; i++) {
        zovn_ring_copy(to, frame->segments[i].bytes, frame->segments[i].length);
        to += frame->segments[i].length;
    }
}

/* What is usual, without lists: the next buffer is one piece of memory with room for all. Return false
 * if it is not: then nothing has changed. */
static bool put_into_one(struct zovn_ring_port *guest, struct zovn_split_ring *ring,
                         const struct zovn_frame *frame) {
    uint32_t bytes = guest->port.header_bytes + frame->length;
    struct zovn_segment buffer;
    int32_t head = zovn_ring_next_buffer(ring, bytes, &buffer);
    if (head < 0)
        return false;
    zovn_ring_prefetch_buffer(ring, ZOVN_RING_AHEAD);
    zovn_ring_write_header(buffer.bytes, guest->port.header_bytes, &frame->offload, 1);
    copy_to_one(buffer.bytes + guest->port.header_bytes, frame);
    zovn_ring_filled(ring, head, &buffer, bytes);
    return true;
}

enum zovn_put_result zovn_ring_put(struct zovn_port *port, struct zovn_frame *frame) {
    struct zovn_ring_port *guest = (struct zovn_ring_port *)port;
    struct gathered to;
    uint32_t pair = pair_for(guest, frame);
    struct zovn_split_ring *ring = &guest->pairs[pair].rings.receive;
    if (put_into_one(guest, ring, frame)) {
        zovn_ring_note(port, ring);
        return ZOVN_PUT_DONE;
    }
    enum outcome outcome = gather_good(guest, ring, &to, guest->port.header_bytes + frame->length);
    zovn_ring_note(port, ring);
    guest->refuse = outcome == NO_ROOM ? pair : guest->refuse;
    if (outcome != GATHERED)
        return outcome == NEVER ? ZOVN_PUT_TOO_LONG : ZOVN_PUT_NO_ROOM;
    uint8_t header[HEADER_BYTES];
    zovn_ring_write_header(header, HEADER_BYTES, &frame->offload, to.buffers);
    zovn_frame_prepend(frame, header, guest->port.header_bytes);
    zovn_frame_copy(frame, to.segments);
    log_copied(ring->memory, &to, frame->length);
    take(ring, &to, frame->length);
    return ZOVN_PUT_DONE;
}
