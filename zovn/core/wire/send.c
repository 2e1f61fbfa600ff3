/* What goes to the wire: pauses first, then questions, then frames as the line and the peer take them. */
#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>

#include "wire/arp.h"
#include "wire/wire_parts.h"

#define SECOND_NS UINT64_C(1000000000)
#define AGAIN_NS UINT64_C(200000) /* after an interface took no frame, or no pause */

/* One copy, for one host. */
static void make(struct zovn_wire *wire, const struct zovn_frame *frame, uint32_t host) {
    uint8_t *slot = zovn_outbound_slot(&wire->outbound, frame->class);
    uint8_t *inner = slot + ZOVN_VXLAN_HEADERS;
    const struct zovn_vxlan_path path = {
        .from = wire->link.self,
        .to = wire->neighbours.of[host].endpoint,
        .vni = wire->vni,
        .class = frame->class,
        .tagged = wire->sender.classes,
    };
    zovn_frame_copy(frame, &(struct zovn_segment){inner, frame->length});
    uint32_t headers = zovn_vxlan_write(inner, frame->length, &path);
    zovn_outbound_add(&wire->outbound, frame->class, ZOVN_VXLAN_HEADERS - headers,
                      headers + frame->length);
}

static bool is_reachable(const struct zovn_wire *wire, uint32_t host) {
    const struct zovn_neighbour *neighbour = &wire->neighbours.of[host];
    return neighbour->known && memcmp(neighbour->endpoint.address, wire->link.self.address, 4) != 0;
}

static uint32_t make_all(struct zovn_wire *wire, const struct zovn_frame *frame) {
    uint32_t copies = 0;
    for (uint32_t i = 0; i < wire->neighbours.count; i++) {
        if (is_reachable(wire, i)) {
            make(wire, frame, i);
            copies++;
        }
    }
    return copies;
}

enum zovn_put_result zovn_wire_put(struct zovn_wire *wire, const struct zovn_frame *frame) {
    uint8_t to[6];
    if (frame->length > wire->most)
        return ZOVN_PUT_TOO_LONG;
    if (!zovn_outbound_room(&wire->outbound) ||
        !zovn_outbound_class_room(&wire->outbound, frame->class))
        return ZOVN_PUT_NO_ROOM;
    zovn_frame_peek(frame, to, sizeof to);
    if (to[0] & 1)
        return make_all(wire, frame) ? ZOVN_PUT_DONE : ZOVN_PUT_NO_LOCATION;
    int32_t host = zovn_locations_find(wire->locations, to);
    if (host < 0 || !is_reachable(wire, (uint32_t)host))
        return ZOVN_PUT_NO_LOCATION;
    make(wire, frame, (uint32_t)host);
    return ZOVN_PUT_DONE;
}

static void send_pauses(struct zovn_wire *wire, uint64_t now_ns) {
    uint8_t frame[ZOVN_PFC_BYTES];
    struct zovn_pfc pfc;
    wire->unsent = zovn_pfc_due(&wire->sender, wire->inbound.held_bytes, now_ns, &pfc);
    if (!wire->unsent)
        return;
    zovn_pfc_write(frame, wire->link.self.ethernet, &pfc);
    if (zovn_link_send_control(&wire->link, frame, sizeof frame))
        return;
    wire->unsent = false;
    zovn_pfc_sent(&wire->sender, &pfc, now_ns);
    wire->counts.pauses_sent++;
}

static void ask_for_neighbours(struct zovn_wire *wire, uint64_t now_ns) {
    uint8_t frame[ZOVN_ARP_BYTES];
    for (int32_t due;
         (due = zovn_neighbours_due(&wire->neighbours, wire->link.self.address, now_ns)) >= 0;) {
        zovn_arp_write(frame, &wire->link.self, wire->neighbours.of[due].endpoint.address);
        zovn_link_send_control(&wire->link, frame, sizeof frame);
        zovn_neighbours_asked(&wire->neighbours, (uint32_t)due, now_ns);
    }
}

/* The MTU was lowered. The control thread reads it soon: the kernel may have that wait. Until then frames
 * of this length, and longer ones, are refused. */
static void lose(struct zovn_wire *wire, uint32_t length) {
    uint32_t headers = ZOVN_VXLAN_HEADERS - (wire->sender.classes ? 0 : ZOVN_VXLAN_TAG);
    uint32_t most = length - headers - 1;
    wire->lost++;
    if (most < wire->most)
        wire->most = most;
}

/* The interface's queue may be full, or the interface down: the frame stays. One that it never takes
 * must not stay: it is lost. */
static bool send_frame(struct zovn_wire *wire, uint64_t now_ns) {
    const uint8_t *bytes;
    uint32_t length;
    int32_t class = zovn_outbound_next(&wire->outbound, &bytes, &length);
    int error = zovn_link_send(&wire->link, bytes, length);
    if (error == -ENODEV || error == -ENXIO)
        wire->port.fault = ZOVN_PEER_GONE;
    if (error == -EMSGSIZE)
        lose(wire, length);
    wire->congested = error && error != -EMSGSIZE;
    if (!wire->congested)
        zovn_outbound_sent(&wire->outbound, (uint32_t)class, now_ns);
    return !wire->congested;
}

void zovn_wire_send(struct zovn_wire *wire, uint64_t now_ns) {
    send_pauses(wire, now_ns);
    ask_for_neighbours(wire, now_ns);
    while (zovn_outbound_due(&wire->outbound, now_ns) <= now_ns && send_frame(wire, now_ns)) {
    }
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t next_due(const struct zovn_wire *wire, uint64_t now_ns) {
    uint64_t due_ns = zovn_outbound_due(&wire->outbound, now_ns);
    if (wire->unsent || (wire->congested && due_ns != UINT64_MAX))
        due_ns = now_ns + AGAIN_NS;
    due_ns = least(due_ns, zovn_pfc_refresh(&wire->sender));
    return least(due_ns, zovn_pfc_expiry(&wire->receiver, now_ns));
}

/* 0 ns would stop the clock. */
void zovn_wire_arm(struct zovn_wire *wire, uint64_t now_ns) {
    uint64_t due_ns = next_due(wire, now_ns);
    if (due_ns == wire->armed_ns || (due_ns == UINT64_MAX && wire->armed_ns == UINT64_MAX))
        return;
    struct itimerspec when = {0};
    if (due_ns != UINT64_MAX)
        when.it_value = (struct timespec){(time_t)(due_ns / SECOND_NS), (long)(due_ns % SECOND_NS)};
    timerfd_settime(wire->clock, TFD_TIMER_ABSTIME, &when, NULL);
    wire->armed_ns = due_ns;
}
