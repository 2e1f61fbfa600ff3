/* The shield: drops what exceeds a router's rate before the host carries it to the router.
 *
 * A filter of clsact, in either direction. It passes everything until user space has set terms. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#include "bucket.bpf.h"
#include "exempt.bpf.h"
#include "headers.bpf.h"

enum {
    HEADERS = 128, /* bytes that may be needed to classify a packet */
    QDISCS = 31,
};

/* Only for user space: data about a program that it finds in force. */
struct origin {
    __u32 layout;
    __u32 made[QDISCS]; /* numbers of interfaces that had no clsact qdisc before; 0: none */
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct origin);
} origin SEC(".maps");

/* Returns the number of packets in a socket buffer. If a guest has joined them, the kernel has not
 * counted them yet. */
static __always_inline __u64 segments_of(const struct __sk_buff *skb) {
    __u64 segments = skb->gso_segs, size = skb->gso_size;
    if (!segments && size) {
        __u32 headers = headers_of((void *)(long)skb->data, (void *)(long)skb->data_end);
        segments = skb->len > headers ? (skb->len - headers + size - 1) / size : 1;
    }
    return segments ? segments : 1;
}

static __always_inline __u64 bytes_of(const struct __sk_buff *skb) {
    return skb->wire_len > skb->len ? skb->wire_len : skb->len;
}

SEC("tc") int xtc_shield_skb(struct __sk_buff *skb) {
    __u32 wanted = skb->len < HEADERS ? skb->len : HEADERS;
    if ((void *)(long)skb->data + wanted > (void *)(long)skb->data_end) {
        bpf_skb_pull_data(skb, wanted); /* if it fails, the packet is not classified */
    }
    struct load load = {
        .skb = skb,
        .segments = segments_of(skb),
        .bytes = bytes_of(skb),
        .now = bpf_ktime_get_ns(),
        .interface = skb->ifindex,
        .exempt = is_exempt((void *)(long)skb->data, (void *)(long)skb->data_end),
    };
    /* UNSPEC passes the packet to the next filter: another owner's program sees what passes. */
    return passes(&load) ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}

char shield_license[] SEC("license") = "Apache-2.0";
