/* Finds packets that keep routing alive, with a bit table that user space writes.
 *
 * A truncated packet, or one with more tags or extension headers than are followed here, is not
 * exempt: it is ordinary traffic. */
#pragma once

#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/icmpv6.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

enum {
    MAX_TAGS = 2,       /* QinQ */
    MAX_EXTENSIONS = 3, /* hop-by-hop, routing or destination options, fragment */
    LENGTHS_END = 0x600, /* smaller EtherTypes are the length of an 802.3 frame with LLC */
    FRAGMENT_OFFSET = 0x1FFF,
    FRAGMENT_OFFSET_6 = 0xFFF8,
};

/* One bit for each value; xtc/shield/exemptions.py writes the same layout. */
struct exemptions {
    __u8 ethertypes[8192];
    __u8 llc[8192]; /* destination and source service access point */
    __u8 tcp[8192];
    __u8 udp[8192];
    __u8 protocols[32];
    __u8 icmpv6[32];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct exemptions);
} exempt SEC(".maps");

struct vlan_tag {
    __be16 tci;
    __be16 ethertype;
};

struct llc_points {
    __be16 both;
};

struct ports {
    __be16 source;
    __be16 destination;
};

struct extension {
    __u8 next;
    __u8 length; /* in units of 8 bytes beyond the first 8 */
    __be16 offset; /* of a fragment header only */
    __u32 rest;
};

struct cursor {
    void *at;
    void *end;
};

/* Returns the header at the cursor and moves past it, or NULL if the packet ends before. */
#define NEXT(cursor, type)                                    \
    ({                                                        \
        type *header_ = (cursor)->at;                         \
        bool there_ = (void *)(header_ + 1) <= (cursor)->end; \
        if (there_) {                                         \
            (cursor)->at = header_ + 1;                       \
        }                                                     \
        there_ ? header_ : NULL;                              \
    })

/* The verifiers of Linux 5.10, 6.1 and 6.12 lose the bounds of a value when its bytes are swapped.
 * The mask restores them; the barrier keeps the compiler from removing the mask. */
static __always_inline bool has_bit(const __u8 *bits, __u32 value) {
    barrier_var(value);
    value &= 0xFFFF;
    return bits[value >> 3] >> (value & 7) & 1;
}

static __always_inline bool exempt_llc(struct cursor *cursor, const struct exemptions *table) {
    struct llc_points *points = NEXT(cursor, struct llc_points);
    return points && has_bit(table->llc, bpf_ntohs(points->both));
}

static __always_inline bool exempt_ports(struct cursor *cursor, const __u8 *bits) {
    struct ports *ports = NEXT(cursor, struct ports);
    return ports && (has_bit(bits, bpf_ntohs(ports->source)) ||
                     has_bit(bits, bpf_ntohs(ports->destination)));
}

static __always_inline bool exempt_transport(struct cursor *cursor, const struct exemptions *table,
                                             __u8 protocol) {
    if (protocol == IPPROTO_TCP) {
        return exempt_ports(cursor, table->tcp);
    }
    if (protocol == IPPROTO_UDP) {
        return exempt_ports(cursor, table->udp);
    }
    if (protocol == IPPROTO_ICMPV6) {
        __u8 *type = NEXT(cursor, __u8);
        return type && table->icmpv6[*type >> 3] >> (*type & 7) & 1;
    }
    return false;
}

static __always_inline bool exempt_protocol(const struct exemptions *table, __u8 protocol) {
    return table->protocols[protocol >> 3] >> (protocol & 7) & 1;
}

static __always_inline bool exempt_ipv4(struct cursor *cursor, const struct exemptions *table) {
    struct iphdr *ip = NEXT(cursor, struct iphdr);
    if (!ip || ip->version != 4 || ip->ihl < 5) {
        return false;
    }
    if (exempt_protocol(table, ip->protocol)) {
        return true;
    }
    if (ip->frag_off & bpf_htons(FRAGMENT_OFFSET)) {
        return false; /* only the first fragment has ports */
    }
    cursor->at = (void *)ip + ip->ihl * 4;
    return exempt_transport(cursor, table, ip->protocol);
}

static __always_inline bool exempt_ipv6(struct cursor *cursor, const struct exemptions *table) {
    struct ipv6hdr *ip = NEXT(cursor, struct ipv6hdr);
    if (!ip || ip->version != 6) {
        return false;
    }
    __u8 protocol = ip->nexthdr;
#pragma unroll
    for (int i = 0; i < MAX_EXTENSIONS; i++) {
        bool options = protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_DSTOPTS ||
                       protocol == IPPROTO_ROUTING;
        if (!options && protocol != IPPROTO_FRAGMENT) {
            break;
        }
        struct extension *extension = NEXT(cursor, struct extension);
        if (!extension) {
            return false;
        }
        if (options) {
            cursor->at += extension->length * 8;
        } else if (extension->offset & bpf_htons(FRAGMENT_OFFSET_6)) {
            return exempt_protocol(table, extension->next);
        }
        protocol = extension->next;
    }
    return exempt_protocol(table, protocol) || exempt_transport(cursor, table, protocol);
}

/* Moves past the VLAN tags after an EtherType; returns the EtherType behind them, 0 if the frame
 * ends before. */
static __always_inline __u16 skip_tags(struct cursor *cursor, __u16 type) {
#pragma unroll
    for (int i = 0; i < MAX_TAGS; i++) {
        if (type != ETH_P_8021Q && type != ETH_P_8021AD) {
            break;
        }
        struct vlan_tag *tag = NEXT(cursor, struct vlan_tag);
        if (!tag) {
            return 0;
        }
        type = bpf_ntohs(tag->ethertype);
    }
    return type;
}

/* Whether the frame between two pointers belongs to a protocol in the table. */
static __always_inline bool is_exempt(void *data, void *end) {
    __u32 zero = 0;
    const struct exemptions *table = bpf_map_lookup_elem(&exempt, &zero);
    struct cursor cursor = {data, end};
    struct ethhdr *ethernet = NEXT(&cursor, struct ethhdr);
    if (!table || !ethernet) {
        return false;
    }
    __u16 type = skip_tags(&cursor, bpf_ntohs(ethernet->h_proto));
    if (type == ETH_P_IP) {
        return exempt_ipv4(&cursor, table);
    }
    if (type == ETH_P_IPV6) {
        return exempt_ipv6(&cursor, table);
    }
    return type < LENGTHS_END ? exempt_llc(&cursor, table) : has_bit(table->ethertypes, type);
}
