// Single queues, classes and filters as requests to the kernel; qdisc/tree.c composes them.
#ifndef XCO_QDISC_PARTS_H
#define XCO_QDISC_PARTS_H

#include <linux/if_ether.h>

#include "qdisc/layout.h"
#include "qdisc/message.h"

// One comparison of a filter: the word at an offset of the IP header, in network order.
struct xco_key {
    uint32_t mask;
    uint32_t value;
    int offset;
};

struct xco_filter {
    uint32_t priority;
    uint16_t protocol; // as ETH_P_IP
    const struct xco_key *keys;
    size_t count;
};

struct xco_bucket {
    uint64_t rate_bps;
    uint64_t peak_bps; // 0: only the rate counts
    uint32_t peak_bytes; // burst at the peak rate
    uint32_t mpu; // least cost of a packet, bytes
    uint32_t burst_bytes;
    uint32_t limit_bytes;
};

// A class of HTB. Its burst covers the lateness of its timer, and is at least two frames.
struct xco_class {
    uint64_t rate_bps;
    uint64_t burst_ns; // as time at its rate
    uint32_t priority;
    uint64_t ceil_bps; // with what it borrows from its parent; 0: its rate
    uint32_t parent;   // minor number; 0: the qdisc
    uint32_t quantum;  // bytes before the next class's turn; 0: two frames
};

// Flags of xco_part_class: change an existing class, or create it.
#define XCO_CHANGE 0
#define XCO_MAKE (NLM_F_CREATE | NLM_F_EXCL)

// Each adds one request: see tc-htb(8), tc-tbf(8), tc-bfifo(8), tc-u32(8). Rates are bits/s.
void xco_part_htb(struct xco_batch *batch, int interface, uint32_t parent, uint32_t handle,
                  uint32_t otherwise);
void xco_part_class(struct xco_batch *batch, const struct xco_tree *tree, uint32_t id,
                    uint16_t flags, const struct xco_class *class);
void xco_part_fq(struct xco_batch *batch, int interface, uint32_t parent, uint32_t handle,
                 uint16_t flags);
void xco_part_mq(struct xco_batch *batch, int interface, uint32_t handle, uint16_t flags);
void xco_part_fifo(struct xco_batch *batch, int interface, uint32_t parent, uint32_t limit_bytes);
void xco_part_bucket(struct xco_batch *batch, int interface, uint32_t parent, uint32_t handle,
                     uint16_t flags, const struct xco_bucket *bucket);
void xco_part_filter(struct xco_batch *batch, int interface, uint32_t class,
                     const struct xco_filter *filter);
// A BPF program as a filter: `direct` acts itself, otherwise its return value is the class.
void xco_part_program(struct xco_batch *batch, int interface, uint32_t parent, int program,
                      const char *name, bool direct);
void xco_part_remove_program(struct xco_batch *batch, int interface, uint32_t parent);
void xco_part_ask_program(struct xco_batch *batch, int interface, uint32_t parent);
void xco_part_clsact(struct xco_batch *batch, int interface);
void xco_part_remove_clsact(struct xco_batch *batch, int interface);
void xco_part_ask_filters(struct xco_batch *batch, int interface, uint32_t parent);
void xco_part_remove_filter(struct xco_batch *batch, int interface, uint32_t parent,
                            const struct xco_filter *filter);
void xco_part_remove_class(struct xco_batch *batch, int interface, uint32_t id);

#endif
