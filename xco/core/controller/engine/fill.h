// Rates for flows that share links: the paper's equal shares, and weighted max-min.
#ifndef XCO_CONTROLLER_ENGINE_FILL_H
#define XCO_CONTROLLER_ENGINE_FILL_H

#include <stddef.h>
#include <stdint.h>

#include "controller/engine/network.h"

struct xco_fill_flow {
    uint32_t source;
    uint32_t destination;
    uint32_t weight;   // at least 1; ignored by equal shares
    uint64_t rate_bps; // the result
};

// Working memory for one network: one number per directed link each.
struct xco_fill {
    uint64_t *left_bps; // set by the caller before each call: capacity for the flows
    uint64_t *load;     // number of flows, or sum of their weights
    uint64_t visits;    // steps over flows in the last call: its cost
};

int xco_fill_init(struct xco_fill *fill, const struct xco_network *network); // -1: no memory
void xco_fill_free(struct xco_fill *fill);

// Section 3.3: a flow's rate is the bottleneck's capacity divided by the number of its flows. As
// every flow gets the least of its path, rounded down, no link gets more than it has left.
void xco_fill_equal(struct xco_fill *fill, const struct xco_network *network,
                    struct xco_fill_flow *flows, size_t count);

// Weighted max-min by water filling: the link that can give least per weight sets the rates of its
// flows; these are subtracted, and so on. Uses up `left_bps`.
void xco_fill_max_min(struct xco_fill *fill, const struct xco_network *network,
                      struct xco_fill_flow *flows, size_t count);

#endif
