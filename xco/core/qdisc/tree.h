// The tree of queues on a host's outgoing interface, as requests to the kernel.
//
//   7c01: htb                           the root; our mark
//   ├── 7c01:1  control                 our messages, limited to a share
//   ├── 7c01:2  small                   small packets and non-IP, limited to a share
//   ├── 7c01:3  newcomers               small or unknown flows, limited to a share
//   ├── 7c01:4  kick                    drops the frames that make the kernel look again
//   └── 7c01:10+k  7d00+k: tbf          the gate of destination k
//        └── 7e00+k: htb                shares an open gate among its V2V flows
//             └── 7e00+k:10+n  bfifo    the queue of V2V flow n, or with BPF of some sources
//
// With shares by VM, the queues of a gate are below 7e00+k:1, from which they borrow: each has its
// guarantee as its rate, and its weight as its quantum.
//
// A BPF program at the egress hook sets the class (qdisc/classify.bpf.c), or else u32 filters of
// the root.
//
// A gate is a token bucket that is closed by `mpu 65000`, so that no packet is affordable, and
// opened by `mpu 0`, which also refills it. For a slice its peak is the rate, and its burst what
// fits into the slice (docs/decisions/0027-gates-of-htb-and-tbf.md). A rate without an end is set at
// the gate's class, which keeps its tokens at a change; the bucket then only cuts merged packets
// into frames.
#ifndef XCO_QDISC_TREE_H
#define XCO_QDISC_TREE_H

#include "qdisc/layout.h"
#include "qdisc/message.h"

// Adds the requests that build the root, its classes and their filters, or that remove it all.
// xco_tree_part names the kernel feature that the message of this place needs.
void xco_tree_build(struct xco_batch *batch, const struct xco_tree *tree);
void xco_tree_remove(struct xco_batch *batch, int interface);
// Adds the request that attaches the classifier before the tree, or removes it.
void xco_tree_classify(struct xco_batch *batch, const struct xco_tree *tree);
void xco_tree_unclassify(struct xco_batch *batch, int interface);
void xco_tree_ask_classifier(struct xco_batch *batch, int interface);
const char *xco_tree_part(const struct xco_batch *batch, uint32_t place);

// Adds the request that limits all flows without a queue of their own together.
void xco_tree_set_newcomers(struct xco_batch *batch, const struct xco_tree *tree,
                            uint64_t rate_bps);

// Adds the requests that create a destination's gate, closed, or remove it with all its queues.
void xco_tree_add_gate(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate);
void xco_tree_remove_gate(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate);

// Adds the requests that create a V2V flow's queue behind a gate, its filters last, or remove it.
void xco_tree_add_flow(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate,
                       unsigned flow, const struct xco_pair *pair);
void xco_tree_remove_flow(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate,
                          unsigned flow, const struct xco_pair *pair);

// Adds the requests that set a gate. With departure times no kernel object is a gate: none is added
// or removed.
void xco_tree_set_gate(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate,
                       const struct xco_opening *opening);

// Adds the query for a gate's backlog, for a V2V flow's backlog and bytes sent, for the newcomers'
// backlog, or for the root. xco_tree_gate_of and xco_tree_flow_of map an answer's handle to its
// gate or flow, -1: neither.
void xco_tree_ask_gate(struct xco_batch *batch, int interface, unsigned gate);
void xco_tree_ask_flow(struct xco_batch *batch, int interface, unsigned gate, unsigned flow);
void xco_tree_ask_newcomers(struct xco_batch *batch, int interface);
void xco_tree_ask_root(struct xco_batch *batch, int interface);
int xco_tree_gate_of(uint32_t handle);
int xco_tree_flow_of(uint32_t handle);

#endif
