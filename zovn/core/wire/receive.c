/* What comes from the wire: frames of the tunnel, pauses, and ARP. The rest is the kernel's. */
#include "wire/arp.h"
#include "wire/wire_parts.h"

/* Of what is read at once, the switch takes so many in a step. The socket has more room for the rest than
 * the classes' buffers. */
enum { BATCH = 128, HELD = 64 };

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

static void hold(struct zovn_wire *wire, const struct zovn_arrival *arrival) {
    struct zovn_vxlan_inner inner;
    enum zovn_vxlan_result result =
        zovn_vxlan_read(arrival->bytes, arrival->length, &wire->link.self, wire->vni, &inner);
    if (result != ZOVN_VXLAN_SOUND) {
        wire->counts.unsound += result != ZOVN_VXLAN_OTHERS;
        return;
    }
    struct zovn_held held = {
        .bytes = arrival->bytes + inner.at,
        .length = inner.length,
        .charged = zovn_line_bytes(arrival->length),
        .buffer = inner.class == ZOVN_VXLAN_UNTAGGED ? wire->class : inner.class,
        .class = inner.class,
    };
    wire->counts.beyond += !zovn_inbound_hold(&wire->inbound, &held);
}

static void take(struct zovn_wire *wire, const struct zovn_arrival *arrival, uint64_t now_ns) {
    struct zovn_endpoint sender;
    struct zovn_pfc pfc;
    if (!arrival->whole)
        wire->counts.unsound++;
    else if (zovn_pfc_read(arrival->bytes, arrival->length, &pfc))
        obey(wire, &pfc, now_ns);
    else if (zovn_arp_read(arrival->bytes, arrival->length, &sender))
        zovn_neighbours_learn(&wire->neighbours, &sender, now_ns);
    else
        hold(wire, arrival);
}

void zovn_wire_receive(struct zovn_wire *wire, uint64_t now_ns) {
    struct zovn_inbound *inbound = &wire->inbound;
    const uint64_t before = inbound->posted;
    struct zovn_arrival arrival;
    int found = 1;
    note_pauses(wire, now_ns);
    for (int i = 0; i < BATCH && found > 0 && inbound->posted - before < HELD; i++) {
        found = zovn_link_receive(&wire->link, zovn_inbound_room(inbound), inbound->slot_bytes,
                                  &arrival);
        if (found > 0)
            take(wire, &arrival, now_ns);
    }
}
