/* Makes packets to other hosts ECN-capable; counts incoming congestion marks by source, and clears
 * those of packets from hosts, so that guests never see them. Traffic from and to elsewhere keeps
 * its bits: who sends it does not slow down for us.
 *
 * Attached to the host's own interface, where VXLAN is already outside: the outer header's marks
 * are counted and cleared before decapsulation, which then leaves the inner bits alone (RFC 6040).
 * Marks that a guest sets itself are overwritten: they would look like congestion. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/pkt_cls.h>
#include <stddef.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "common/place.h"
#include "shim/maps.h"

const volatile struct xco_shim_terms terms SEC(".rodata.terms") = {0};

#include "common/packet.bpf.h"

#define NO_ECN 0xffu /* neither IPv4 nor IPv6 */
#define NOT_CAPABLE 0u
#define CAPABLE 2u /* ECT(0) */
#define MARKED 3u  /* CE */
#define ECN_BITS 3u
#define IP_CHECK_SUM 10 /* offset in the header */
#define IP4_NEXT 9 /* offsets in the headers */
#define IP6_NEXT 6
#define TCP_LENGTH 12
#define IP6_BYTES 40
#define UDP_BYTES 8
#define IP6_SHIFT 4     /* the bits are in the second byte, above four of the flow label */

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1); /* set at load: the hosts, and all others */
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct xco_shim_counts);
} sources SEC(".maps");

/* Returns the byte that has the two bits, in IPv4 and IPv6 the second. */
static __always_inline int ecn_byte(struct __sk_buff *skb, const struct packet *packet,
                                    __u8 *byte) {
    return bpf_skb_load_bytes(skb, packet->offset + 1, byte, 1);
}

static __always_inline __u32 shift_of(const struct packet *packet) {
    return packet->protocol == ETH_P_IPV6 ? IP6_SHIFT : 0;
}

/* Returns the two bits of a packet. */
static __always_inline __u32 read_ecn(struct __sk_buff *skb, const struct packet *packet) {
    __u8 byte;
    if (packet->protocol != ETH_P_IP && packet->protocol != ETH_P_IPV6) {
        return NO_ECN;
    }
    return ecn_byte(skb, packet, &byte) < 0 ? NO_ECN : byte >> shift_of(packet) & ECN_BITS;
}

/* Writes the two bits; the check sum of an IPv4 header follows. */
static __always_inline void write_ecn(struct __sk_buff *skb, const struct packet *packet,
                                      __u32 bits) {
    __u8 before;
    if (ecn_byte(skb, packet, &before) < 0) {
        return;
    }
    __u32 shift = shift_of(packet);
    __u8 after = (__u8)((before & ~(ECN_BITS << shift)) | bits << shift);
    __u64 flags = BPF_F_RECOMPUTE_CSUM;
    if (packet->protocol == ETH_P_IP) {
        /* what the header adds to a sum over the whole packet stays the same */
        flags = 0;
        bpf_l3_csum_replace(skb, packet->offset + IP_CHECK_SUM, bpf_htons(before), bpf_htons(after),
                            sizeof(__be16));
    }
    bpf_skb_store_bytes(skb, packet->offset + 1, &after, 1, flags);
}

SEC("tc") int xco_shim_out(struct __sk_buff *skb) {
    struct packet packet;
    if (read_packet(skb, &packet) < 0) {
        return TC_ACT_UNSPEC;
    }
    __u32 bits = read_ecn(skb, &packet);
    int own = terms.keep && bits != NOT_CAPABLE && bits != MARKED;
    if (bits != NO_ECN && bits != CAPABLE && !own && host_of(skb, &packet, TO) != NO_HOST) {
        write_ecn(skb, &packet, CAPABLE);
    }
    return TC_ACT_UNSPEC; /* lets the next program decide */
}

static __always_inline __u32 byte_at(struct __sk_buff *skb, __u32 offset) {
    __u8 byte = 0;
    bpf_skb_load_bytes(skb, offset, &byte, 1);
    return byte;
}

/* Returns the length of the headers of a packet, without extensions of IPv6. */
static __always_inline __u32 headers_of(struct __sk_buff *skb, const struct packet *packet) {
    int six = packet->protocol == ETH_P_IPV6;
    __u32 network = six ? IP6_BYTES : 4 * (byte_at(skb, packet->offset) & 15);
    __u32 transport = byte_at(skb, packet->offset + (six ? IP6_NEXT : IP4_NEXT));
    __u32 after = packet->offset + network;
    return after +
           (transport == IPPROTO_TCP ? 4 * (byte_at(skb, after + TCP_LENGTH) >> 4) : UDP_BYTES);
}

/* Returns the bytes that came: each of the packets that the kernel merged had headers. */
static __always_inline __u64 bytes_of(struct __sk_buff *skb, const struct packet *packet,
                                      __u64 packets) {
    return packets == 1 ? skb->len : skb->len + (packets - 1) * headers_of(skb, packet);
}

static __always_inline void count(struct __sk_buff *skb, const struct packet *packet, __u32 host,
                                  int marked) {
    __u32 place = host < terms.hosts ? host : terms.hosts;
    struct xco_shim_counts *counts = bpf_map_lookup_elem(&sources, &place);
    __u64 packets = skb->gso_segs ? skb->gso_segs : 1;
    if (counts) { /* several CPUs may receive at one time */
        __sync_fetch_and_add(&counts->packets, packets);
        __sync_fetch_and_add(&counts->bytes, bytes_of(skb, packet, packets));
        __sync_fetch_and_add(&counts->marks, marked ? packets : 0);
    }
}

SEC("tc") int xco_shim_in(struct __sk_buff *skb) {
    struct packet packet;
    if (read_packet(skb, &packet) < 0) {
        return TC_ACT_UNSPEC;
    }
    __u32 bits = read_ecn(skb, &packet);
    if (bits == NO_ECN) {
        return TC_ACT_UNSPEC;
    }
    __u32 host = host_of(skb, &packet, FROM);
    count(skb, &packet, host, bits == MARKED);
    if (!terms.keep && bits != NOT_CAPABLE && host != NO_HOST) {
        write_ecn(skb, &packet, NOT_CAPABLE);
    }
    return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Dual BSD/GPL";
