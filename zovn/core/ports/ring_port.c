/* Frames from a guest's transmit ring; notifications of both rings. */
#include "ports/ring_port.h"

#include <stdlib.h>
#include <string.h>

#include "ports/ring_parts.h"
#include "rings/chain.h"
#include "rings/inflight.h"

_Static_assert(sizeof(struct zovn_offload) == 10, "as virtio_net_hdr without num_buffers");

static struct zovn_ring_port *of(struct zovn_port *port) {
    return (struct zovn_ring_port *)port;
}

/* A port has the first fault of its rings. */
static void note(struct zovn_port *port, const struct zovn_split_ring *ring) {
    port->fault = port->fault ? port->fault : zovn_split_ring_fault(ring);
}

/* Begin to load what the classification reads first. An address that is wrong does no harm. */
static void prefetch(const struct zovn_split_ring *ring, const uint16_t *heads, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        __builtin_prefetch(&ring->descriptors[heads[i]]);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t address = ZOVN_READ(ring->descriptors[heads[i]].address);
        const uint8_t *bytes = zovn_memory_at(ring->memory, address, 1);
        if (bytes) {
            __builtin_prefetch(bytes);
            __builtin_prefetch(bytes + 64);
        }
    }
}

static uint32_t peek_resumed(struct zovn_ring_port *guest, uint16_t *heads, uint32_t most) {
    uint32_t left = guest->resumed_end - guest->resumed_at, count = left < most ? left : most;
    memcpy(heads, &guest->resumed[guest->resumed_at], count * sizeof *heads);
    guest->resumed_at += count;
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
    ring->next_avail = (uint16_t)(ring->next_avail + count);
    return count;
}

static uint32_t peek(struct zovn_port *port, uint16_t *heads, uint32_t most) {
    struct zovn_ring_port *guest = of(port);
    uint32_t count = guest->resumed_at < guest->resumed_end
                         ? peek_resumed(guest, heads, most)
                         : peek_new(&guest->transmit, heads, most);
    note(port, &guest->transmit);
    prefetch(&guest->transmit, heads, count);
    return count;
}

static enum zovn_frame_result frame(struct zovn_port *port, uint16_t head,
                                    struct zovn_frame *frame) {
    const struct zovn_ring_port *guest = of(port);
    zovn_frame_begin(frame);
    struct zovn_segment *segments = &frame->segments[frame->end];
    int32_t count = zovn_chain(&guest->transmit, head, false, segments, ZOVN_MOST_SEGMENTS);
    if (count < 0)
        return ZOVN_FRAME_MALFORMED;
    uint64_t bytes = 0;
    for (int32_t i = 0; i < count; i++)
        bytes += segments[i].length;
    if (bytes < guest->header_bytes + ZOVN_LEAST_BYTES)
        return ZOVN_FRAME_MALFORMED;
    if (bytes > guest->header_bytes + ZOVN_MOST_BYTES)
        return ZOVN_FRAME_TOO_LONG;
    frame->end += (uint32_t)count;
    frame->length = (uint32_t)bytes;
    zovn_frame_peek(frame, (uint8_t *)&frame->offload, sizeof frame->offload);
    zovn_frame_trim(frame, guest->header_bytes);
    return ZOVN_FRAME_OK;
}

static bool room(struct zovn_port *port) {
    struct zovn_split_ring *ring = &of(port)->receive;
    bool any = zovn_split_ring_available(ring) > 0;
    note(port, ring);
    return any;
}

static void complete(struct zovn_port *port, uint16_t head) {
    zovn_split_ring_complete(&of(port)->transmit, head, 0);
}

static void show(struct zovn_port *port) {
    struct zovn_ring_port *guest = of(port);
    if (zovn_split_ring_publish(&guest->receive) && guest->notify)
        guest->notify(guest->context, true);
}

static bool give_back(struct zovn_split_ring *ring) {
    if (!ring->inflight)
        return zovn_split_ring_publish(ring);
    uint16_t published = ring->published;
    zovn_inflight_giving(ring);
    bool notify = zovn_split_ring_publish(ring);
    zovn_inflight_given(ring, published);
    return notify;
}

static void publish(struct zovn_port *port) {
    struct zovn_ring_port *guest = of(port);
    if (give_back(&guest->transmit) && guest->notify)
        guest->notify(guest->context, false);
}

static void free_port(struct zovn_port *port) {
    struct zovn_ring_port *guest = of(port);
    if (guest->closed)
        guest->closed(guest->context, &guest->transmit, &guest->receive);
    free(guest->resumed);
    free(guest);
}

static const struct zovn_port_calls CALLS = {
    peek, frame, zovn_ring_put, room, complete, publish, free_port,
};

static bool resume(struct zovn_ring_port *guest) {
    if (!guest->transmit.inflight)
        return true;
    guest->resumed = calloc(guest->transmit.size, sizeof *guest->resumed);
    if (guest->resumed)
        guest->resumed_end = zovn_inflight_resume(&guest->transmit, guest->resumed);
    return guest->resumed;
}

struct zovn_port *zovn_ring_port_new(const struct zovn_ring_settings *settings) {
    if (!zovn_split_ring_valid(&settings->transmit) || !zovn_split_ring_valid(&settings->receive))
        return NULL;
    struct zovn_ring_port *guest = calloc(1, sizeof *guest);
    if (!guest)
        return NULL;
    *guest = (struct zovn_ring_port){
        .port = {.calls = &CALLS,
                 .heads = settings->transmit.size,
                 .sends = settings->sends,
                 .takes = settings->takes,
                 .show = show},
        .transmit = settings->transmit,
        .receive = settings->receive,
        .header_bytes = settings->mergeable || settings->version_1 ? 12 : 10,
        .mergeable = settings->mergeable,
        .notify = settings->notify,
        .closed = settings->closed,
        .context = settings->context,
    };
    if (!resume(guest)) {
        free(guest);
        return NULL;
    }
    zovn_ring_port_ask(&guest->port, false);
    return &guest->port;
}

void zovn_ring_port_ask(struct zovn_port *port, bool notify) {
    zovn_split_ring_ask(&of(port)->transmit, notify);
    zovn_split_ring_ask(&of(port)->receive, notify);
}

uint64_t zovn_ring_port_bad_buffers(const struct zovn_port *port) {
    return ((const struct zovn_ring_port *)port)->bad_buffers;
}
