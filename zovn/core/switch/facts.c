/* Reads a frame's headers: addresses, VLAN, class, and what its sender left to do. */
#include "switch/facts.h"

#include <string.h>

#include "switch/segment.h"
#include "switch/words.h"

enum { NEEDS_CHECKSUM = 1, ECN_BIT = 0x80, MOST_PACKET = 65535, TAG_BYTES = 4 };
enum { TAG = 0x8100, IPV4 = 0x0800, IPV6 = 0x86dd };

int32_t zovn_offloads_of(const struct zovn_offload *offload) {
    static const uint8_t KINDS[] = {0,         ZOVN_TCP4,        0, ZOVN_UDP_FRAGMENTS,
                                    ZOVN_TCP6, ZOVN_UDP_SEGMENTS};
    uint32_t kind = offload->kind & ~(uint32_t)ECN_BIT;
    if (kind >= sizeof KINDS || (kind && !KINDS[kind]) || (!kind && offload->kind))
        return -1;
    return KINDS[kind] | (offload->kind & ECN_BIT ? ZOVN_ECN : 0) |
           (offload->flags & NEEDS_CHECKSUM ? ZOVN_CHECKSUM : 0);
}

/* The place is behind Ethernet's header and within the frame; in a packet all fields are even. A tag
 * that is added later moves it. */
static bool checksum_holds(const struct zovn_facts *facts, const struct zovn_offload *offload) {
    uint32_t start = offload->checksum_start, offset = offload->checksum_offset;
    return start >= zovn_network_at(facts) && start + TAG_BYTES <= UINT16_MAX &&
           start + offset + 2 <= facts->length && start % 2 == 0 && offset % 2 == 0;
}

/* A frame to be segmented has no checksum yet (5.1.6.2). */
static bool offload_holds(struct zovn_facts *facts, uint32_t sends) {
    struct zovn_offload *offload = &facts->offload;
    offload->flags &= NEEDS_CHECKSUM;
    if (!offload->flags && !offload->kind) {
        *offload = (struct zovn_offload){0};
        return true;
    }
    int32_t needed = zovn_offloads_of(offload);
    return needed >= 0 && !((uint32_t)needed & ~sends) && offload->flags &&
           (!offload->kind || offload->segment_bytes) && checksum_holds(facts, offload);
}

/* A source that is a group, or no address at all, is none. */
static bool addresses_hold(const uint8_t *header) {
    static const uint8_t ZERO[6];
    return !(header[6] & 1) && memcmp(header + 6, ZERO, 6) != 0;
}

static bool reserved(const uint8_t *header) {
    static const uint8_t BRIDGES[] = {0x01, 0x80, 0xc2, 0, 0};
    return memcmp(header, BRIDGES, sizeof BRIDGES) == 0 && header[5] < 16;
}

bool zovn_carries(const struct zovn_port_settings *port, uint16_t vlan) {
    bool tagged = port->trunk && port->vlans[vlan / 64] >> vlan % 64 & 1;
    return tagged || (vlan && vlan == port->vlan);
}

/* A tag of VLAN 0 has a priority only. Only trunks accept tags with a VLAN. */
static bool vlan_of(struct zovn_facts *facts, const struct zovn_port_settings *port) {
    uint32_t vlan = facts->tagged ? zovn_word_at(facts->header + 14) & 0xfff : 0;
    facts->vlan = vlan ? (uint16_t)vlan : port->vlan;
    return facts->vlan && (!vlan || port->trunk) && zovn_carries(port, facts->vlan);
}

/* Return the first two bytes of the network header of an IP packet, shifted so that the traffic
 * class is the low byte; -1 for other packets. */
static int32_t traffic_class(const struct zovn_facts *facts, const uint8_t *head, uint32_t length) {
    uint32_t at = zovn_network_at(facts);
    uint32_t type = zovn_word_at(head + at - 2);
    if (length < at + 2 || (type != IPV4 && type != IPV6))
        return -1;
    return type == IPV4 ? head[at + 1] : (zovn_word_at(head + at) >> 4 & 0xff);
}

static uint8_t class_of(const struct zovn_facts *facts, int32_t traffic,
                        const struct zovn_port_settings *port,
                        const struct zovn_settings *settings) {
    if (port->trust == ZOVN_TRUST_PRIORITY && facts->tagged)
        return settings->class_of_priority[facts->header[14] >> 5];
    if (port->trust == ZOVN_TRUST_DSCP && traffic >= 0)
        return settings->class_of_dscp[traffic >> 2];
    return port->class;
}

enum zovn_reason zovn_facts_find(struct zovn_facts *facts, const struct zovn_frame *frame,
                                 uint32_t sends, const struct zovn_port_settings *port,
                                 const struct zovn_settings *settings) {
    uint8_t head[ZOVN_HEADER + 2] = {0};
    uint32_t length = frame->length < sizeof head ? frame->length : (uint32_t)sizeof head;
    if (__builtin_expect(length == sizeof head, 1))
        zovn_frame_peek(frame, head, sizeof head); /* inlined */
    else
        zovn_frame_peek(frame, head, length);
    facts->length = frame->length;
    facts->offload = frame->offload;
    memcpy(facts->header, head, ZOVN_HEADER);
    facts->tagged = zovn_word_at(head + 12) == TAG;
    if (!addresses_hold(head) || (facts->tagged && length < ZOVN_HEADER) ||
        !offload_holds(facts, sends))
        return ZOVN_MALFORMED;
    if (facts->length > zovn_network_at(facts) + MOST_PACKET)
        return ZOVN_TOO_LONG;
    if (reserved(head))
        return ZOVN_RESERVED;
    facts->payload_at =
        facts->offload.kind ? zovn_payload_at(frame, &facts->offload, zovn_network_at(facts)) : 0;
    facts->class = frame->class < ZOVN_CLASSES
                       ? frame->class
                       : class_of(facts, traffic_class(facts, head, length), port, settings);
    return vlan_of(facts, port) ? ZOVN_REASONS : ZOVN_VLAN;
}
