/* Frames from a guest's transmit rings; notifications of all rings. */
#include "ports/ring_port.h"

#include <stdlib.h>

#include "ports/ring_parts.h"
#include "rings/chain.h"
#include "rings/inflight.h"

_Static_assert(sizeof(struct zovn_offload) == 10, "as virtio_net_hdr without num_buffers");

static struct zovn_ring_port *of(struct zovn_port *port) {
    return (struct zovn_ring_port *)port;
}

static enum zovn_frame_result frame(struct zovn_port *port, uint16_t head,
                                    struct zovn_frame *frame) {
    struct zovn_ring_port *guest = of(port);
    const struct zovn_guest_pair *pair = zovn_ring_pair_of(guest, head);
    zovn_frame_begin(frame);
    struct zovn_segment *segments = &frame->segments[frame->end];
    const struct zovn_split_ring *ring = &pair->rings.transmit;
    uint16_t own = (uint16_t)(head - pair->first);
    int32_t count = zovn_chain_one(ring, own, false, segments)
                        ? 1
                        : zovn_chain(ring, own, false, segments, ZOVN_MOST_SEGMENTS);
    if (count < 0)
        return ZOVN_FRAME_MALFORMED;
    uint64_t bytes = 0;
    for (int32_t i = 0; i < count; i++)
        bytes += segments[i].length;
    if (bytes < guest->port.header_bytes + ZOVN_LEAST_BYTES)
        return ZOVN_FRAME_MALFORMED;
    if (bytes > guest->port.header_bytes + ZOVN_MOST_BYTES)
        return ZOVN_FRAME_TOO_LONG;
    frame->end += (uint32_t)count;
    frame->length = (uint32_t)bytes;
    zovn_frame_peek(frame, (uint8_t *)&frame->offload, sizeof frame->offload);
    zovn_frame_trim(frame, guest->port.header_bytes);
    return ZOVN_FRAME_OK;
}

/* A guest that stood still goes on when it serves the ring that was full. */
static bool room(struct zovn_port *port) {
    struct zovn_ring_port *guest = of(port);
    struct zovn_split_ring *ring = &guest->pairs[guest->refuse].rings.receive;
    bool any = zovn_split_ring_known(ring, 1) > 0;
    zovn_ring_note(port, ring);
    return any;
}

static void complete(struct zovn_port *port, uint16_t head) {
    struct zovn_guest_pair *pair = zovn_ring_pair_of(of(port), head);
    zovn_split_ring_complete(&pair->rings.transmit, (uint16_t)(head - pair->first), 0);
}

static void complete_all(struct zovn_port *port, const uint16_t *heads, uint32_t count) {
    struct zovn_split_ring *only = of(port)->count == 1 ? &of(port)->pairs[0].rings.transmit : NULL;
    for (uint32_t i = 0; i < count; i++)
        if (only)
            zovn_split_ring_complete(only, heads[i], 0);
        else
            complete(port, heads[i]);
}

static void show(struct zovn_port *port) {
    struct zovn_ring_port *guest = of(port);
    guest->bad_in_step = 0;
    for (uint32_t i = 0; i < guest->count; i++)
        if (zovn_split_ring_publish(&guest->pairs[i].rings.receive) && guest->notify)
            guest->notify(guest->context, i, true);
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
    for (uint32_t i = 0; i < guest->count; i++)
        if (give_back(&guest->pairs[i].rings.transmit) && guest->notify)
            guest->notify(guest->context, i, false);
}

static void free_port(struct zovn_port *port) {
    struct zovn_ring_port *guest = of(port);
    for (uint32_t i = 0; i < guest->count; i++) {
        if (guest->closed)
            guest->closed(guest->context, i, &guest->pairs[i].rings);
        free(guest->pairs[i].resumed);
    }
    free(guest);
}

static const struct zovn_port_calls CALLS = {
    zovn_ring_peek, frame, zovn_ring_put, room, complete, publish, free_port,
};

static bool resume(struct zovn_guest_pair *pair) {
    struct zovn_split_ring *transmit = &pair->rings.transmit;
    if (!transmit->inflight)
        return true;
    pair->resumed = calloc(transmit->size, sizeof *pair->resumed);
    if (pair->resumed)
        pair->resumed_end = zovn_inflight_resume(transmit, pair->resumed);
    return pair->resumed;
}

static bool fits(const struct zovn_ring_port *guest, const struct zovn_ring_pair *rings) {
    return guest->count < ZOVN_MOST_PAIRS && zovn_split_ring_valid(&rings->transmit) &&
           zovn_split_ring_valid(&rings->receive) &&
           rings->transmit.size <= guest->port.heads - guest->heads;
}

/* The guest notifies until the port sleeps and wakes again: what is there already is found by a step. */
bool zovn_ring_port_add(struct zovn_port *port, const struct zovn_ring_pair *rings) {
    struct zovn_ring_port *guest = of(port);
    if (!fits(guest, rings))
        return false;
    struct zovn_guest_pair *pair = &guest->pairs[guest->count];
    *pair = (struct zovn_guest_pair){.rings = *rings, .first = guest->heads};
    if (!resume(pair))
        return false;
    guest->heads += rings->transmit.size;
    guest->count++;
    port->put_plain = guest->count == 1 ? zovn_ring_put_plain : NULL;
    zovn_ring_port_ask(port, true);
    return true;
}

struct zovn_port *zovn_ring_port_new(const struct zovn_ring_settings *settings) {
    struct zovn_ring_port *guest = calloc(1, sizeof *guest);
    if (!guest)
        return NULL;
    uint32_t size = settings->transmit.size;
    *guest = (struct zovn_ring_port){
        .port = {.calls = &CALLS,
                 .heads = settings->heads > size ? settings->heads : size,
                 .sends = settings->sends,
                 .takes = settings->takes,
                 .find_wholes = zovn_ring_find_wholes,
                 .header_bytes = settings->mergeable || settings->version_1 ? 12 : 10,
                 .plain_room = zovn_ring_plain_room,
                 .complete_all = complete_all,
                 .show = show},
        .mergeable = settings->mergeable,
        .notify = settings->notify,
        .closed = settings->closed,
        .context = settings->context,
    };
    if (!zovn_ring_port_add(&guest->port,
                            &(struct zovn_ring_pair){settings->transmit, settings->receive})) {
        free(guest);
        return NULL;
    }
    zovn_ring_port_ask(&guest->port, false);
    return &guest->port;
}

void zovn_ring_port_ask(struct zovn_port *port, bool notify) {
    struct zovn_ring_port *guest = of(port);
    for (uint32_t i = 0; i < guest->count; i++) {
        zovn_split_ring_ask(&guest->pairs[i].rings.transmit, notify);
        zovn_split_ring_ask(&guest->pairs[i].rings.receive, notify);
    }
}

uint64_t zovn_ring_port_bad_buffers(const struct zovn_port *port) {
    return ((const struct zovn_ring_port *)port)->bad_buffers;
}
