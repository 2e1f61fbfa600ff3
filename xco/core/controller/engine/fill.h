// Rates for flows that share links: the paper's equal shares, or guarantees; for weighted max-min
// see controller/engine/water.h.
#ifndef XCO_CONTROLLER_ENGINE_FILL_H
#define XCO_CONTROLLER_ENGINE_FILL_H

#include <stddef.h>
#include <stdint.h>

#include "controller/engine/network.h"

#define XCO_FILL_GREEDY UINT64_MAX // demands all that it can get

struct xco_fill_flow {
    uint32_t source;
    uint32_t destination;
    uint64_t weight;         // at least 1; ignored by equal shares
    uint64_t demand_bps;     // the most that it gets while others want more; the same
    uint32_t guarantee_mbps; // the same
    uint64_t granted_bps;    // of that, what the links can give: set by xco_fill_guarantees
    uint64_t rate_bps;       // the result
};

// Working memory for one network: one number per directed link each.
struct xco_fill {
    uint64_t *left_bps; // set by the caller before each call: capacity for the flows
    uint64_t *load;     // number of flows, or sum of their weights or guarantees
    uint64_t visits;    // steps over flows by the last strategy: its cost
};

int xco_fill_init(struct xco_fill *fill, const struct xco_network *network); // -1: no memory
void xco_fill_free(struct xco_fill *fill);

// Section 3.3: a flow's rate is the bottleneck's capacity divided by the number of its flows. As
// every flow gets the least of its path, rounded down, no link gets more than it has left.
void xco_fill_equal(struct xco_fill *fill, const struct xco_network *network,
                    struct xco_fill_flow *flows, size_t count);

// Adds to rates what is guaranteed, and subtracts it from `left_bps`. A guarantee counts up to
// its demand and to what its path can promise (common/promise.h). Where those of a link are more, each gets its part.
void xco_fill_guarantees(struct xco_fill *fill, const struct xco_network *network,
                         struct xco_fill_flow *flows, size_t count);

// Adds to the load of every link of a flow's path.
void xco_fill_load(struct xco_fill *fill, const struct xco_network *network,
                   const struct xco_fill_flow *flow, uint64_t weight);

// Adds to a flow's rate; subtracts that and a weight from the links of its path.
void xco_fill_give(struct xco_fill *fill, const struct xco_network *network,
                   struct xco_fill_flow *flow, uint64_t rate_bps, uint64_t weight);

#endif
