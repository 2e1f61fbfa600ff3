/* Length of the headers that each segment of a joined packet repeats. */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "exempt.bpf.h"

/* Ethernet, IPv4, UDP: the default for unknown packets. With a hidden header, a packet counts as
 * more. */
enum { SHORTEST_HEADERS = sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr) };

/* Returns the length of a transport header at the cursor; 0 for one that cannot be joined. */
static __always_inline __u32 transport_length(struct cursor *cursor, __u8 protocol) {
    if (protocol == IPPROTO_UDP) {
        return sizeof(struct udphdr);
    }
    struct tcphdr *tcp = protocol == IPPROTO_TCP ? NEXT(cursor, struct tcphdr) : NULL;
    return tcp ? tcp->doff * 4 : 0;
}

static __always_inline __u32 ipv4_lengths(struct cursor *cursor) {
    struct iphdr *ip = NEXT(cursor, struct iphdr);
    if (!ip || ip->ihl < 5) {
        return 0;
    }
    __u32 length = ip->ihl * 4, transport;
    cursor->at = (void *)ip + length;
    transport = transport_length(cursor, ip->protocol);
    return transport ? length + transport : 0;
}

static __always_inline __u32 ipv6_lengths(struct cursor *cursor) {
    struct ipv6hdr *ip = NEXT(cursor, struct ipv6hdr);
    __u32 transport = ip ? transport_length(cursor, ip->nexthdr) : 0;
    return transport ? sizeof(*ip) + transport : 0;
}

/* Returns the length of the headers of the frame between two pointers, in bytes. */
static __always_inline __u32 headers_of(void *data, void *end) {
    struct cursor cursor = {data, end};
    struct ethhdr *ethernet = NEXT(&cursor, struct ethhdr);
    if (!ethernet) {
        return SHORTEST_HEADERS;
    }
    __u16 type = skip_tags(&cursor, bpf_ntohs(ethernet->h_proto));
    __u32 link = cursor.at - data, rest = 0;
    if (type == ETH_P_IP) {
        rest = ipv4_lengths(&cursor);
    } else if (type == ETH_P_IPV6) {
        rest = ipv6_lengths(&cursor);
    }
    return rest ? link + rest : SHORTEST_HEADERS;
}
