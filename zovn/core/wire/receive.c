/* What comes from the wire: frames of the tunnel, pauses, and ARP. The rest is the kernel's. */
#include "wire/arp.h"
#include "wire/wire_parts.h"

enum { BATCH = 128, HELD = 64 }; /* frames read in a step, and those that the switch takes in one */

/* Time in which a class was paused, up to now. */
static void note_pauses(struct zovn_wire *wire, uint64_t now_ns) {
    if (wire->outbound.paused)
        wire->counts.paused_ns += now_ns - wire->seen_ns;
    wire->seen_ns = now_ns;
    wire->outbound.paused = zovn_pfc_paused(&wire->receiver, now_ns);
}

/* A pause for a class that is none of PFC here is not obeyed. */
static void obey(struct zovn_wire *wire, struct zovn_pfc *pfc, uint64_t now_ns) {
    wire->counts.pauses++;
    pfc->enabled &= wire->sender.classes;
    zovn_pfc_obey(&wire->receiver, pfc, now_ns);
    note_pauses(wire, now_ns);
}

/* Return whether the next frame of the class may find no room: it is better left in the socket. */
static bool fills(const struct zovn_inbound *inbound, uint32_t buffer) {
    return inbound->held_bytes[buffer] + zovn_line_bytes(inbound->slot_bytes) >
           inbound->buffer_bytes;
}

/* Return whether more should be read. A class that was full before stops no other. Firewalls of this host
 * do not see these frames: only hosts of the map may send them. */
static bool hold(struct zovn_wire *wire, const struct zovn_arrival *arrival) {
    struct zovn_vxlan_inner inner;
    enum zovn_vxlan_result result =
        zovn_vxlan_read(arrival->bytes, arrival->length, &wire->link.self, wire->vni, &inner);
    if (result == ZOVN_VXLAN_OTHERS)
        return true;
    if (result != ZOVN_VXLAN_SOUND || !zovn_neighbours_has(&wire->neighbours, inner.from)) {
        wire->counts.unsound++;
        return true;
    }
    struct zovn_held held = {
        .bytes = arrival->bytes + inner.at,
        .length = inner.length,
        .charged = zovn_line_bytes(arrival->length),
        .buffer = inner.class == ZOVN_VXLAN_UNTAGGED ? wire->class : inner.class,
        .class = inner.class,
    };
    if (zovn_inbound_hold(&wire->inbound, &held))
        return !fills(&wire->inbound, held.buffer);
    wire->counts.beyond++;
    return true;
}

static bool take(struct zovn_wire *wire, const struct zovn_arrival *arrival, uint64_t now_ns) {
    struct zovn_endpoint sender;
    struct zovn_pfc pfc;
    if (!arrival->whole)
        wire->counts.unsound++;
    else if (zovn_pfc_read(arrival->bytes, arrival->length, &pfc))
        obey(wire, &pfc, now_ns);
    else if (zovn_arp_read(arrival->bytes, arrival->length, &sender))
        zovn_neighbours_learn(&wire->neighbours, &sender, now_ns);
    else
        return hold(wire, arrival);
    return true;
}

/* A backlog has to pass XOFF in its buffer, for only then the peer is paused. What comes after that, and
 * all without PFC, waits in the socket, which has more room. */
static uint32_t most(const struct zovn_wire *wire) {
    const struct zovn_pfc_sender *sender = &wire->sender;
    bool beyond = false;
    for (uint32_t i = 0; i < ZOVN_PFC_CLASSES; i++)
        beyond |= sender->classes >> i & 1 && wire->inbound.held_bytes[i] > sender->xoff_bytes;
    return sender->classes && !beyond ? BATCH : HELD;
}

void zovn_wire_receive(struct zovn_wire *wire, uint64_t now_ns) {
    struct zovn_inbound *inbound = &wire->inbound;
    const uint64_t before = inbound->posted;
    struct zovn_arrival arrival;
    bool more = true;
    note_pauses(wire, now_ns);
    for (int i = 0; i < BATCH && more && inbound->posted - before < most(wire); i++)
        more = zovn_link_receive(&wire->link, zovn_inbound_room(inbound), inbound->slot_bytes,
                                 &arrival) > 0 &&
               take(wire, &arrival, now_ns);
}
