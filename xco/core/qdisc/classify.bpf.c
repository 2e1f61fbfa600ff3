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
#include <linux/pkt_sched.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "qdisc/maps.h"

#define BULK 64 /* most packets that leave the queues together */

const volatile struct xco_classify_terms terms SEC(".rodata.terms") = {0};

#include "common/packet.bpf.h"
#include "qdisc/kernel.bpf.h"
#include "qdisc/pace.bpf.h"
#include "qdisc/stream.bpf.h"
#include "qdisc/queue.bpf.h"
#include "qdisc/sources.bpf.h"

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
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct xco_root);
} root SEC(".maps");

/* Whether this is a pause of a switch on this host (802.1Qbb), which must not wait behind small packets:
 * a VM may send any number of those, and none of this priority. */
static __always_inline int is_pause(const struct __sk_buff *skb) {
    return skb->priority == TC_PRIO_CONTROL && skb->protocol == bpf_htons(ETH_P_PAUSE);
}

/* A refused packet is lost as on a link (TC_ACT_STOLEN): a local TCP that notices the drop tries again
 * each 0.5 s, and soon has no attempt left. */
SEC("tc") int xco_classify(struct __sk_buff *skb) {
    __u32 zero = 0, queue = NO_QUEUE;
    if (is_pause(skb)) {
        skb->priority = XCO_CLASS_ROOT | XCO_MINOR_CONTROL;
    }
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

/* Gives a packet its departure time, which fq keeps; drops it if that is too far ahead. It is
 * attached where xco_classify would be, with fq behind it instead of a tree of queues. */
SEC("tc") int xco_pace(struct __sk_buff *skb) {
    __u32 queue = XCO_PACE_CONTROL;
    if (skb->priority != (XCO_CLASS_ROOT | XCO_MINOR_CONTROL) && !is_pause(skb)) {
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

/* Returns the slot of a packet, and leaves it to xco_entered. */
static __always_inline __u32 note_slot(struct __sk_buff *skb) {
    __u32 zero = 0, slot = slot_of(skb);
    struct entering *packet = bpf_map_lookup_elem(&entering, &zero);
    if (packet) {
        packet->slot = slot;
    }
    return slot;
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
