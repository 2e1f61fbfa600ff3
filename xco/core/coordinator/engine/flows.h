// V2V flows with a queue of their own, candidates for one, and idle ones.
//
// Pure: time is a parameter. A flow that sends more than a threshold within a window is large.
// Where newcomers wait for each other, every flow seen counts as large: many at once would all stay
// below the threshold. A flow is idle if its queue moved nothing for long (paper, sections 3.5 and
// 4.8).
#ifndef XCO_COORDINATOR_ENGINE_FLOWS_H
#define XCO_COORDINATOR_ENGINE_FLOWS_H

#include "qdisc/watch.h"

#define XCO_CANDIDATES 512
#define XCO_FLOWS_OUTSIDE (XCO_FLOWS / 2) // of them to destinations outside the topology

struct xco_v2v_flow {
    bool used;
    unsigned gate;
    struct xco_pair pair;
    uint64_t sent_bytes;
    uint32_t backlog_bytes;
    int64_t active_ns; // when something of it last moved or waited
};

struct xco_candidate {
    struct xco_pair pair;
    uint64_t bytes;
    int64_t since_ns;
    bool used;
};

struct xco_flows {
    uint32_t large_bytes; // within
    int64_t window_ns;
    int64_t idle_ns;
    struct xco_v2v_flow table[XCO_FLOWS];
    struct xco_candidate candidates[XCO_CANDIDATES];
    unsigned count;
    unsigned outside; // of the count
};

// Counts a packet of a flow without a queue; returns whether it makes the flow large. `crowded`:
// newcomers wait. `since_ns` is when the first packet of the window was seen.
bool xco_flows_see(struct xco_flows *flows, int64_t now_ns, const struct xco_sight *sight,
                   bool crowded, int64_t *since_ns);

// Whether there is room for a flow behind a gate, plus `spare` others.
bool xco_flows_room(const struct xco_flows *flows, unsigned gate, unsigned spare);

// Adds a flow; returns its slot, or -1: the table is full or has it already.
int xco_flows_add(struct xco_flows *flows, int64_t now_ns, const struct xco_pair *pair,
                  unsigned gate);
void xco_flows_remove(struct xco_flows *flows, unsigned flow);

// Takes the kernel's numbers of a flow's queue.
void xco_flows_look(struct xco_flows *flows, int64_t now_ns, unsigned flow, uint64_t sent_bytes,
                    uint32_t backlog_bytes);
bool xco_flows_idle(const struct xco_flows *flows, int64_t now_ns, unsigned flow);

// Whether a gate has any flow.
bool xco_flows_behind(const struct xco_flows *flows, unsigned gate);

// Writes the pairs of all flows, at most XCO_FLOWS; returns their number.
size_t xco_flows_pairs(const struct xco_flows *flows, struct xco_pair pairs[XCO_FLOWS]);

#endif
