// The layout of an interface's queues: numbers, handles and limits.
#ifndef XCO_QDISC_LAYOUT_H
#define XCO_QDISC_LAYOUT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/message.h"

#define XCO_OUTSIDE XCO_ENTRIES_MAX        // the gate of destinations outside the topology
#define XCO_GATES (XCO_ENTRIES_MAX + 1)    // gates per interface
#define XCO_FLOWS 256                      // V2V flows per interface
#define XCO_SLICE_LONGEST_NS 40000000      // a longer opening is no slice

#define XCO_ROOT 0x7c010000u
#define XCO_CLASS_CONTROL (XCO_ROOT | 1u)
#define XCO_CLASS_KICK (XCO_ROOT | 4u)

// What a VM is promised.
struct xco_slot {
    uint16_t weight;         // 0: there is no such VM
    uint16_t guarantee_mbps; // what it gets before others get more than theirs
};

// The queue of a slot behind one gate.
struct xco_slot_class {
    uint64_t guarantee_bps; // its part of what the VM is promised
    uint16_t weight;        // 0: there is no such queue
};

// Parameters of the tree's queues and limits.
struct xco_tree {
    int interface;          // index
    uint32_t frame_bytes;   // the largest frame of the interface
    uint32_t small_bytes;   // a power of two: IP packets below it are small
    uint64_t small_bps;     // limit of all small packets together
    uint64_t newcomer_bps;  // limit of all flows without a queue of their own
    uint32_t newcomer_bytes; // their queue limit
    uint32_t queue_bytes;   // queue limit of one V2V flow
    uint64_t burst_ns;      // burst of an open gate, as time at the line rate
    int classify, share;    // BPF programs of the classifier; 0: u32 filters classify
    bool paced;             // no tree: packets have departure times, which fq keeps
    uint32_t uncut_bytes;   // largest packet that passes a gate uncut, if above two frames
    // XCO_SLOTS queues for each gate; NULL: queues by interface, all alike
    const struct xco_slot_class *slots;
};

// Source and destination of a V2V flow; IPv4 addresses are mapped into IPv6 (RFC 4291, 2.5.5.2).
struct xco_pair {
    struct in6_addr source;
    struct in6_addr destination;
};

// A gate's setting: open at a rate, closed at 0.
struct xco_opening {
    uint64_t rate_bps;
    // above 0: it gets no more than it can send in that time, so that a late closing (the kernel's
    // lock was taken) lets nothing pass; 0: it stays open
    int64_t lasts_ns;
    bool goes_on; // it was open until now, and the backlog has used up its burst
    bool lasted;  // its last setting was an opening without an end
};

// Whether an opening has no end, or one that the kernel's buckets do not reach.
static inline bool xco_lasts(const struct xco_opening *opening) {
    return opening->rate_bps > 0 &&
           (opening->lasts_ns <= 0 || opening->lasts_ns > XCO_SLICE_LONGEST_NS);
}

#endif
