/* Classifies outgoing packets, and counts the backlog of each class.
 *
 * xco_classify is attached to the egress hook, before the queues: it writes the class into the
 * packet's priority, which HTB obeys. xco_share spreads the packets behind one gate over queues
 * by the interface that they came from, which no VM can forge: a listed VM has its own. xco_entered
 * and xco_left count at the queues' tracepoints. With departure-time gates, xco_pace is attached
 * alone. docs/howto/xco.md lists which packets belong where. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "qdisc/maps.h"

#define NO_QUEUE 0xffffffffu
#define REFUSED 0xfffffffeu /* a packet that is dropped */
#define BULK 64 /* most packets that leave the queues together */

/* The fields needed of the kernel's structures, at any offset. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common {
    unsigned int inum;
};
struct net {
    struct ns_common ns;
};
typedef struct {
    struct net *net;
} possible_net_t;
struct net_device {
    int ifindex;
    possible_net_t nd_net;
};
struct netdev_queue {
    struct net_device *dev;
};
struct gnet_stats_queue {
    __u32 requeues;
};
struct Qdisc {
    __u32 handle;
    struct gnet_stats_queue qstats;
};
struct sk_buff {
    struct sk_buff *next;
    __u32 priority;
    char cb[48];
};
#pragma clang attribute pop

const volatile struct xco_classify_terms terms SEC(".rodata.terms") = {0};

#include "common/packet.bpf.h"
#include "qdisc/pace.bpf.h"
#include "qdisc/stream.bpf.h"

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

/* Slots of listed VMs by the index of their interface. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, XCO_SLOTS);
    __type(key, __u32);
    __type(value, __u32);
} vms SEC(".maps");

/* Bytes that entered each queue, by slot. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, (XCO_QUEUE_OUTSIDE + 1) * XCO_SLOTS);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, __u64);
} slots SEC(".maps");

/* The packet between classifier and queue on this CPU. */
struct entering {
    __u32 queue;
    __u32 bytes;
    __u32 slot;
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct entering);
} entering SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 65536);
} notices SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct xco_root);
} root SEC(".maps");

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

/* A refused packet is lost as on a link (TC_ACT_STOLEN): a local TCP that is told of the loss tries
 * again each 0.5 s, and soon has no attempt left. */
SEC("tc") int xco_classify(struct __sk_buff *skb) {
    __u32 zero = 0, queue = NO_QUEUE;
    /* only the host's own root can aim at a class (socket(7), SO_PRIORITY) */
    if (skb->priority != (XCO_CLASS_ROOT | XCO_MINOR_CONTROL) &&
        skb->priority != (XCO_CLASS_ROOT | XCO_MINOR_KICK)) {
        queue = queue_of(skb);
        if (queue == REFUSED) {
            return TC_ACT_STOLEN;
        }
        skb->priority = class_of(queue);
    }
    struct entering *packet = bpf_map_lookup_elem(&entering, &zero);
    if (packet) {
        packet->queue = queue;
        packet->bytes = skb->wire_len;
    }
    return TC_ACT_UNSPEC; /* lets the next filter decide */
}

/* Returns the slot of a packet: of the host itself, of a listed VM, or of some that are not. */
static __always_inline __u32 slot_of(struct __sk_buff *skb) {
    __u32 interface = skb->ingress_ifindex;
    if (!interface) {
        return XCO_SLOT_HOST;
    }
    __u32 *slot = bpf_map_lookup_elem(&vms, &interface);
    if (slot) {
        return *slot;
    }
    __u64 spread = interface * 2654435761u; /* Fibonacci hashing */
    return XCO_SLOT_UNLISTED + (__u32)(spread * (XCO_SOURCES - XCO_SLOT_UNLISTED) >> 32);
}

static __always_inline void count_slot(__u32 queue, __u32 slot, __u32 bytes) {
    __u32 place = queue * XCO_SLOTS + slot;
    __u64 *entered = queue <= XCO_QUEUE_OUTSIDE ? bpf_map_lookup_elem(&slots, &place) : 0;
    if (entered) {
        __sync_fetch_and_add(entered, bytes);
    }
}

/* Gives a packet its departure time, which fq keeps; drops it if that is too far ahead. It is
 * attached where xco_classify would be, with fq behind it instead of a tree of queues. */
SEC("tc") int xco_pace(struct __sk_buff *skb) {
    __u32 queue = XCO_PACE_CONTROL;
    if (skb->priority != (XCO_CLASS_ROOT | XCO_MINOR_CONTROL)) {
        queue = queue_of(skb);
    }
    if (queue == REFUSED) {
        return TC_ACT_STOLEN;
    }
    if (!depart(skb, queue == NO_QUEUE ? XCO_PACE_SMALL : queue)) {
        return TC_ACT_SHOT;
    }
    if (terms.vms) {
        count_slot(queue, slot_of(skb), skb->wire_len);
    }
    return TC_ACT_UNSPEC;
}

/* Distinguishes the sources behind a gate: by the interface that a packet came from, which no VM
 * can forge; for the host itself, by the flow if the kernel knows it, or else the socket. */
static __always_inline __u32 source_of(struct __sk_buff *skb) {
    __u32 source = skb->ingress_ifindex;
    if (!source) {
        source = skb->hash;
    }
    return source ? source : (__u32)bpf_get_socket_cookie(skb);
}

/* Returns the slot of a packet, and leaves it to xco_entered. */
static __always_inline __u32 note_slot(struct __sk_buff *skb) {
    __u32 zero = 0, slot = slot_of(skb);
    struct entering *packet = bpf_map_lookup_elem(&entering, &zero);
    if (packet) {
        packet->slot = slot;
    }
    return slot;
}

static __always_inline __u32 spread_of(struct __sk_buff *skb) {
    __u32 spread = source_of(skb) * 2654435761u; /* Fibonacci hashing */
    return spread >> (32 - XCO_SOURCE_BITS);
}

SEC("tc") int xco_share(struct __sk_buff *skb) {
    __u32 gate = (skb->priority & 0xffff) - XCO_MINOR_GATES;
    __u32 queue = terms.vms ? note_slot(skb) : spread_of(skb);
    return (int)((XCO_SHARE_MAJOR + gate) << 16 | (XCO_MINOR_GATES + queue));
}

static __always_inline struct xco_root *our_root(void) {
    __u32 zero = 0;
    return bpf_map_lookup_elem(&root, &zero);
}

/* Whether a queue is the root that we count at, on its interface. */
static __always_inline int is_ours(const struct xco_root *ours, const struct Qdisc *qdisc,
                                   const struct netdev_queue *place) {
    struct net_device *device = place->dev;
    return qdisc->handle == XCO_CLASS_ROOT && (__u32)device->ifindex == ours->interface &&
           device->nd_net.net->ns.inum == ours->namespace;
}

SEC("tp_btf/qdisc_enqueue")
int BPF_PROG(xco_entered, struct Qdisc *qdisc, struct netdev_queue *place) {
    __u32 zero = 0;
    struct entering *packet = bpf_map_lookup_elem(&entering, &zero);
    struct xco_root *ours = our_root();
    if (!packet || !ours) {
        return 0;
    }
    if (packet->queue == NO_QUEUE || !is_ours(ours, qdisc, place)) {
        return 0;
    }
    __u32 queue = packet->queue;
    struct xco_passage *passage = bpf_map_lookup_elem(&passages, &queue);
    packet->queue = NO_QUEUE;
    if (passage) {
        passage->entered += packet->bytes; /* under the root's lock: one at a time */
        if (terms.vms) {
            count_slot(queue, packet->slot, packet->bytes);
        }
        if (passage->tell) {
            passage->tell = notify(XCO_NOTICE_ENTERED, queue) != 0;
        }
    }
    return 0;
}

/* Counts the bytes that leave a queue by the class of the packet. */
static __always_inline void count_left(struct sk_buff *skb) {
    __u32 class = skb->priority, bytes = 0;
    __u32 minor = class & 0xffff;
    __u32 queue = minor == XCO_MINOR_NEWCOMERS ? XCO_QUEUE_NEWCOMERS : minor - XCO_MINOR_GATES;
    struct xco_passage *passage = bpf_map_lookup_elem(&passages, &queue);
    if ((class & 0xffff0000) != XCO_CLASS_ROOT || !passage) {
        return;
    }
    /* its length on the wire comes first in the queues' data of the packet (struct qdisc_skb_cb) */
    bpf_probe_read_kernel(&bytes, sizeof bytes, skb->cb);
    passage->left += bytes;
}

SEC("tp_btf/qdisc_dequeue")
int BPF_PROG(xco_left, struct Qdisc *qdisc, struct netdev_queue *place, int packets,
             struct sk_buff *skb) {
    struct xco_root *kept = our_root();
    if (!skb || !kept) {
        return 0;
    }
    if (!is_ours(kept, qdisc, place)) {
        return 0;
    }
    __u32 requeues = qdisc->qstats.requeues;
    kept->again += requeues - kept->requeues;
    kept->requeues = requeues;
    for (int i = 0; i < BULK && skb; i++) {
        if (kept->again > 0) {
            kept->again--;
        } else {
            count_left(skb);
        }
        skb = packets > 1 ? skb->next : 0;
    }
    return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL"; /* the kernel's tracing helpers require GPL */
