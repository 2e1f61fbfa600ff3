/* The calls of a wire port. */
#include "wire/wire_port.h"

#include <time.h>

#include "wire/wire_parts.h"

static struct zovn_wire *of(struct zovn_port *port) {
    return (struct zovn_wire *)port;
}

uint64_t zovn_wire_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A pause must not wait for what the switch does in its step. */
static uint32_t peek(struct zovn_port *port, uint16_t *heads, uint32_t most) {
    struct zovn_wire *wire = of(port);
    uint64_t now_ns = zovn_wire_now();
    zovn_wire_receive(wire, now_ns);
    zovn_wire_send(wire, now_ns);
    wire->read = true;
    return port->fault ? 0 : zovn_inbound_peek(&wire->inbound, heads, most);
}

static enum zovn_frame_result frame(struct zovn_port *port, uint16_t head,
                                    struct zovn_frame *frame) {
    const struct zovn_held *held = &of(port)->inbound.held[head];
    zovn_frame_begin(frame);
    zovn_frame_append(frame, held->bytes, held->length);
    if (held->class != ZOVN_VXLAN_UNTAGGED)
        frame->class = held->class;
    return ZOVN_FRAME_OK;
}

static enum zovn_put_result put(struct zovn_port *port, struct zovn_frame *frame) {
    return zovn_wire_put(of(port), frame);
}

static bool room(struct zovn_port *port) {
    return zovn_outbound_room(&of(port)->outbound);
}

static bool class_room(struct zovn_port *port, uint32_t class) {
    return zovn_outbound_class_room(&of(port)->outbound, class);
}

static void complete(struct zovn_port *port, uint16_t head) {
    zovn_inbound_release(&of(port)->inbound, head);
}

/* The switch does not peek while a flood of this port waits for parking; pauses come meanwhile. */
static void publish(struct zovn_port *port) {
    struct zovn_wire *wire = of(port);
    uint64_t now_ns = zovn_wire_now();
    if (!wire->read)
        zovn_wire_receive(wire, now_ns);
    wire->read = false;
    zovn_wire_send(wire, now_ns);
    if (wire->asked)
        zovn_wire_arm(wire, now_ns);
}

/* Frames that have not been sent. */
static uint32_t waiting(const struct zovn_outbound *outbound) {
    uint32_t frames = 0;
    for (uint32_t i = 0; i < ZOVN_PFC_CLASSES; i++)
        frames += outbound->rings[i].count;
    return frames;
}

/* What was put, and is not sent in the end, is lost as well. */
static void count(const struct zovn_port *port, struct zovn_port_counts *counts) {
    struct zovn_wire *wire = (struct zovn_wire *)port;
    zovn_link_count(&wire->link);
    *counts = wire->counts;
    counts->overruns = wire->link.overruns + wire->lost;
    if (wire->ending)
        counts->overruns += waiting(&wire->outbound);
}

/* Whatever may be sent was sent when the port was published last: what is left is counted. */
static void free_port(struct zovn_port *port) {
    zovn_wire_close(of(port));
}

static const struct zovn_port_calls CALLS = {peek, frame, put, room, complete, publish, free_port};

struct zovn_port *zovn_wire_port_new(const struct zovn_wire_settings *settings, char *problem) {
    struct zovn_wire *wire = zovn_wire_open(settings, problem);
    if (!wire)
        return NULL;
    wire->port = (struct zovn_port){
        .calls = &CALLS, .heads = wire->inbound.count, .class_room = class_room, .count = count};
    return &wire->port;
}

const char *zovn_wire_port_missing(const char *interface, const uint8_t local[4]) {
    return zovn_link_missing(interface, local);
}

int zovn_wire_port_wake(const struct zovn_port *port) {
    return ((const struct zovn_wire *)port)->wake;
}

void zovn_wire_port_ask(struct zovn_port *port, bool notify) {
    of(port)->asked = notify;
    if (notify)
        zovn_wire_arm(of(port), zovn_wire_now());
}

uint32_t zovn_wire_port_mtu(const struct zovn_port *port) {
    return zovn_link_mtu(&((const struct zovn_wire *)port)->link);
}

void zovn_wire_port_limit(struct zovn_port *port, uint32_t mtu) {
    zovn_wire_limit(of(port), mtu);
}

void zovn_wire_port_end(struct zovn_port *port) {
    of(port)->ending = true;
}

bool zovn_wire_port_gone(const struct zovn_port *port) {
    return zovn_link_gone(&((const struct zovn_wire *)port)->link);
}

bool zovn_wire_port_locate(struct zovn_port *port, const char *path, char *problem) {
    struct zovn_locations *locations = zovn_locations_load(path, problem);
    if (!locations)
        return false;
    zovn_locations_free(zovn_wire_port_relocate(port, locations));
    return true;
}

struct zovn_locations *zovn_wire_port_relocate(struct zovn_port *port,
                                               struct zovn_locations *locations) {
    struct zovn_locations *before = of(port)->locations;
    of(port)->locations = locations;
    zovn_neighbours_set(&of(port)->neighbours, locations);
    return before;
}
