/* A packet's addresses, and the hosts that they belong to. */
#ifndef XCO_COMMON_PACKET_BPF_H
#define XCO_COMMON_PACKET_BPF_H

#define NO_HOST 0xffffffffu
#define VLAN_ID 0x0fffu
#define MAC_BYTES 6

/* Which address of a packet: offsets in its headers. */
struct side {
    __u32 mac, ip, ip6;
};
#define TO ((struct side){0, 16, 24})
#define FROM ((struct side){6, 12, 8})

/* Kinds of addresses that may exist: others need no look-up. */
__u32 kinds SEC(".data.kinds") = 0;

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct xco_place);
    __type(value, __u32); /* host */
} places SEC(".maps");

/* The fields of a packet that decide. */
struct packet {
    __u16 vlan, protocol;
    __u32 offset; /* of the data after Ethernet and its tags */
    __u8 to[MAC_BYTES]; /* the destination's */
};

/* Reads Ethernet and up to two tags; a tag that the device would add is in the packet's
 * metadata. */
static __always_inline int read_packet(struct __sk_buff *skb, struct packet *packet) {
    __be16 protocol;
    if (bpf_skb_load_bytes(skb, 0, packet->to, MAC_BYTES) < 0 ||
        bpf_skb_load_bytes(skb, 12, &protocol, sizeof protocol) < 0) {
        return -1;
    }
    packet->vlan = skb->vlan_present ? skb->vlan_tci & VLAN_ID : 0;
    packet->offset = ETH_HLEN;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        struct {
            __be16 tci, protocol;
        } tag;
        if (protocol != bpf_htons(ETH_P_8021Q) && protocol != bpf_htons(ETH_P_8021AD)) {
            break;
        }
        if (bpf_skb_load_bytes(skb, packet->offset, &tag, sizeof tag) < 0) {
            return -1;
        }
        packet->vlan = packet->vlan ? packet->vlan : bpf_ntohs(tag.tci) & VLAN_ID;
        packet->offset += sizeof tag;
        protocol = tag.protocol;
    }
    packet->protocol = bpf_ntohs(protocol);
    return 0;
}

/* Returns the host of a place in this VLAN, or in any. */
static __always_inline __u32 *looked_up(struct xco_place *place, __u16 vlan) {
    if (!(*(volatile __u32 *)&kinds & XCO_KIND_BIT(place->kind, vlan))) {
        return 0;
    }
    place->vlan = vlan;
    return bpf_map_lookup_elem(&places, place);
}

/* VLAN number 0xffff is invalid (802.1Q), so a packet's own is never XCO_ANY_VLAN. */
static __always_inline __u32 host_at(struct xco_place *place, __u16 vlan) {
    __u32 *host = looked_up(place, XCO_ANY_VLAN);
    if (!host) {
        host = looked_up(place, vlan);
    }
    return host ? *host : NO_HOST;
}

/* Returns the host that a packet goes to or comes from: its MAC's, else its IP address's. */
static __always_inline __u32 host_of(struct __sk_buff *skb, const struct packet *packet,
                                     const struct side side) {
    struct xco_place place = {.kind = XCO_PLACE_MAC};
    if (bpf_skb_load_bytes(skb, side.mac, place.address, MAC_BYTES) < 0) {
        return NO_HOST;
    }
    __u32 host = host_at(&place, packet->vlan);
    if (host != NO_HOST) {
        return host;
    }
    place = (struct xco_place){.kind = XCO_PLACE_IP};
    if (packet->protocol == ETH_P_IP) {
        place.address[10] = place.address[11] = 0xff;
        if (bpf_skb_load_bytes(skb, packet->offset + side.ip, place.address + 12, 4) < 0) {
            return NO_HOST;
        }
    } else if (packet->protocol != ETH_P_IPV6 ||
               bpf_skb_load_bytes(skb, packet->offset + side.ip6, place.address, 16) < 0) {
        return NO_HOST;
    }
    return host_at(&place, packet->vlan);
}

#endif
