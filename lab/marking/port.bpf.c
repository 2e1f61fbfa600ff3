/* Marks ECN-capable packets (RFC 3168) at the egress of a switch's port whose queue is long.
 *
 * The program runs just before the port's queue, whose length it reads from the kernel: what tc
 * shows as backlog. Packets that are not ECN-capable pass as they are; a full queue drops them. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "port.h"

#define NOT_CAPABLE 0u
#define MARKED 3u /* CE */
#define IP_CHECK_SUM 10
#define IP6_SHIFT 4 /* the bits are in the second byte, above four of the flow label */
#define NS_PER_S 1000000000ull
#define LONGEST_PAUSE NS_PER_S /* after which any phantom queue is empty */

/* Only the fields read; the loader adjusts their offsets to the running kernel's (CO-RE). */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct gnet_stats_queue {
    __u32 backlog;
};
struct Qdisc {
    struct gnet_stats_queue qstats;
};
struct netdev_queue {
    struct Qdisc *qdisc;
};
struct net_device {
    struct netdev_queue *_tx;
};
struct sk_buff {
    struct net_device *dev;
};
#pragma clang attribute pop

void *bpf_cast_to_kern_ctx(void *) __ksym;

struct phantom {
    struct bpf_spin_lock lock;
    __u64 queued, at_ns;
};

const volatile struct port_terms terms SEC(".rodata.terms") = {0};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct port_counts);
} counts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct phantom);
} phantoms SEC(".maps");

/* Where a packet has its ECN bits. */
struct place {
    __u16 protocol;
    __u32 offset; /* of the IP header */
    __u8 byte;    /* the second of it */
};

/* Returns the bytes that wait at this port; all queues of an interface with a shaper share it. */
static __always_inline __u64 real_queue(struct __sk_buff *ctx) {
    const struct sk_buff *skb = bpf_cast_to_kern_ctx(ctx);
    return skb->dev->_tx->qdisc->qstats.backlog;
}

/* Adds a packet to the queue that is served slower than the port, and so builds up when the real
 * one does not; returns what it met there. */
static __always_inline __u64 phantom_queue(__u32 bytes) {
    __u32 zero = 0;
    struct phantom *phantom = bpf_map_lookup_elem(&phantoms, &zero);
    if (!phantom) {
        return 0;
    }
    __u64 now = bpf_ktime_get_ns(), met = 0;
    bpf_spin_lock(&phantom->lock);
    __u64 pause = now > phantom->at_ns ? now - phantom->at_ns : 0;
    pause = pause > LONGEST_PAUSE ? LONGEST_PAUSE : pause;
    __u64 served = pause * terms.phantom_rate / NS_PER_S;
    met = served >= phantom->queued ? 0 : phantom->queued - served;
    phantom->queued = met + bytes > terms.phantom_most ? terms.phantom_most : met + bytes;
    phantom->at_ns = now;
    bpf_spin_unlock(&phantom->lock);
    return met;
}

/* Whether a packet that meets this queue is marked: none, some, or all. */
static __always_inline int is_long(__u64 queued) {
    if (queued <= terms.low) {
        return 0;
    }
    return queued > terms.high ||
           bpf_get_prandom_u32() % (terms.high - terms.low) < queued - terms.low;
}

/* Finds the bits behind Ethernet and up to two tags; the outer tag may be in the metadata. */
static __always_inline int find(struct __sk_buff *skb, struct place *place) {
    __be16 protocol;
    place->offset = ETH_HLEN;
    if (bpf_skb_load_bytes(skb, ETH_HLEN - sizeof protocol, &protocol, sizeof protocol) < 0) {
        return -1;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (protocol != bpf_htons(ETH_P_8021Q) && protocol != bpf_htons(ETH_P_8021AD)) {
            break;
        }
        if (bpf_skb_load_bytes(skb, place->offset + 2, &protocol, sizeof protocol) < 0) {
            return -1;
        }
        place->offset += 4;
    }
    place->protocol = bpf_ntohs(protocol);
    if (place->protocol != ETH_P_IP && place->protocol != ETH_P_IPV6) {
        return -1;
    }
    return bpf_skb_load_bytes(skb, place->offset + 1, &place->byte, 1);
}

static __always_inline __u32 shift_of(const struct place *place) {
    return place->protocol == ETH_P_IPV6 ? IP6_SHIFT : 0;
}

/* Sets both bits; the check sum of an IPv4 header follows. */
static __always_inline int mark(struct __sk_buff *skb, const struct place *place) {
    __u8 after = (__u8)(place->byte | MARKED << shift_of(place));
    __u64 flags = BPF_F_RECOMPUTE_CSUM;
    if (place->protocol == ETH_P_IP) {
        flags = 0; /* a sum over the whole packet stays the same */
        bpf_l3_csum_replace(skb, place->offset + IP_CHECK_SUM, bpf_htons(place->byte),
                            bpf_htons(after), sizeof(__be16));
    }
    return bpf_skb_store_bytes(skb, place->offset + 1, &after, 1, flags);
}

/* Several CPUs may send at one time. */
static __always_inline void count(__u32 bytes, __u64 queued, int capable, int marked) {
    __u32 zero = 0;
    struct port_counts *total = bpf_map_lookup_elem(&counts, &zero);
    if (total) {
        __sync_fetch_and_add(&total->packets, 1);
        __sync_fetch_and_add(&total->bytes, bytes);
        __sync_fetch_and_add(&total->capable, capable);
        __sync_fetch_and_add(&total->marks, marked);
        total->queued = queued;
    }
}

SEC("tc") int mark_port(struct __sk_buff *skb) {
    struct place place = {0};
    __u64 real = real_queue(skb);
    __u64 met = terms.phantom_rate ? phantom_queue(skb->len) : real;
    __u32 bits = NOT_CAPABLE;
    if (find(skb, &place) == 0) {
        bits = place.byte >> shift_of(&place) & MARKED;
    }
    __u32 bytes = skb->len;
    int marked = bits != NOT_CAPABLE && bits != MARKED && is_long(met) && mark(skb, &place) == 0;
    count(bytes, real, bits != NOT_CAPABLE, marked);
    return TC_ACT_UNSPEC; /* lets the next program decide */
}

char _license[] SEC("license") = "Dual BSD/GPL";
