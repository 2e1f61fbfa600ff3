/* Which queue of the tree a packet belongs to: by its host, and whether that has a gate. */
#ifndef XCO_QDISC_QUEUE_BPF_H
#define XCO_QDISC_QUEUE_BPF_H

#define NO_QUEUE 0xffffffffu
#define REFUSED 0xfffffffeu /* a packet that is dropped */

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1); /* set at load: the number of hosts */
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct xco_target);
} targets SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, XCO_QUEUES);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct xco_passage);
} passages SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 65536);
} notices SEC(".maps");

/* Sends a notice to the coordinator; nonzero if there is no room. */
static __always_inline long notify(__u32 kind, __u32 which) {
    struct xco_notice notice = {kind, which};
    return bpf_ringbuf_output(&notices, &notice, sizeof notice, 0);
}

/* Whether more than so many bytes wait in a queue. */
static __always_inline int holds(__u32 queue, __u64 bytes) {
    if (terms.paced) {
        return waiting_bytes(queue) > bytes;
    }
    struct xco_passage *passage = bpf_map_lookup_elem(&passages, &queue);
    return passage && passage->entered - passage->left > bytes;
}

/* Counts bytes to a host without a gate, and notifies once when it becomes large. */
static __always_inline void count_newcomer(struct xco_target *target, __u32 host, __u32 bytes) {
    __u64 now_ns = bpf_ktime_get_ns();
    if (now_ns - target->since_ns > terms.window_ns) {
        target->since_ns = now_ns;
        target->bytes = 0;
    }
    target->bytes += bytes;
    if (!target->wanted &&
        (target->bytes >= terms.large_bytes || holds(XCO_QUEUE_NEWCOMERS, terms.crowd_bytes))) {
        target->wanted = notify(XCO_NOTICE_WANTED, host) == 0;
    }
}

/* Returns the queue of a packet to a host. */
static __always_inline __u32 queue_to(__u32 host, __u32 bytes) {
    struct xco_target *target = bpf_map_lookup_elem(&targets, &host);
    if (!target) {
        return XCO_QUEUE_OUTSIDE;
    }
    __u32 gate = target->gate;
    if (gate == 0) {
        count_newcomer(target, host, bytes);
        return XCO_QUEUE_NEWCOMERS;
    }
    return gate <= XCO_QUEUE_OUTSIDE + 1 ? gate - 1 : XCO_QUEUE_OUTSIDE;
}

/* Whether a host gets no new connection now; counts the attempt then. */
static __always_inline int refuses(__u32 host) {
    struct xco_target *target = bpf_map_lookup_elem(&targets, &host);
    if (!target || *(volatile __u64 *)&target->refuses_ns <= bpf_ktime_get_ns()) {
        return 0;
    }
    __sync_fetch_and_add(&target->refused, 1);
    return 1;
}

/* Returns the queue of a packet; NO_QUEUE: it is small, REFUSED: it must be dropped. The end of a
 * TCP stream waits behind its data: ahead of it, it would make TCP take all of that for lost. */
static __always_inline __u32 queue_of(struct __sk_buff *skb) {
    struct packet packet;
    if (read_packet(skb, &packet) < 0 || packet.protocol == ETH_P_ARP) {
        return NO_QUEUE;
    }
    int small = skb->len - packet.offset < terms.small_bytes;
    __u8 flags = small || terms.admission ? tcp_flags(skb, &packet) : 0;
    int bypasses = small && !(flags & TCP_FIN), begins = terms.admission && begins_stream(flags);
    if (bypasses && !begins) {
        return NO_QUEUE;
    }
    __u32 host = packet.to[0] & 1 ? NO_HOST : host_of(skb, &packet, TO); /* a group is not a host */
    if (begins && refuses(host)) {
        return REFUSED;
    }
    if (bypasses) {
        return NO_QUEUE;
    }
    __u32 queue = host == NO_HOST ? XCO_QUEUE_OUTSIDE : queue_to(host, skb->wire_len);
    return small && !holds(queue, 0) ? NO_QUEUE : queue;
}

static __always_inline __u32 class_of(__u32 queue) {
    __u32 minor = queue == NO_QUEUE              ? XCO_MINOR_SMALL
                  : queue == XCO_QUEUE_NEWCOMERS ? XCO_MINOR_NEWCOMERS
                                                 : XCO_MINOR_GATES + queue;
    return XCO_CLASS_ROOT | minor;
}

#endif
