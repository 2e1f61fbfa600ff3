// Rates for flows that share links: the paper's equal shares, and weighted max-min.
#ifndef XCO_CONTROLLER_ENGINE_FILL_H
#define XCO_CONTROLLER_ENGINE_FILL_H

#include <stddef.h>
#include <stdint.h>

#include "controller/engine/network.h"

struct xco_fill_flow {
    uint32_t source;
    uint32_t destination;
    uint32_t weight;   // at least 1; equal shares take no notice of it
    uint64_t rate_bps; // the answer
};

// What is computed with, for one network: one number a directed link each.
struct xco_fill {
    uint64_t *left_bps; // set by the caller before each call: what the flows may use
    uint64_t *load;     // flows, or their weights
    uint64_t visits;    // of flows by the last call: what it cost
};

int xco_fill_init(struct xco_fill *fill, const struct xco_network *network); // -1: no memory
void xco_fill_free(struct xco_fill *fill);

// Section 3.3: a flow's rate is the bottleneck's capacity by the number of flows through it. Given
// the least of that along the path, rounded down, no link gets more than it has left.
void xco_fill_equal(struct xco_fill *fill, const struct xco_network *network,
                    struct xco_fill_flow *flows, size_t count);

// Weighted max-min by water filling: of all links, the one that can give least by weight sets the
// rates of its flows; they are taken off, and so on. Uses up `left_bps`.
void xco_fill_max_min(struct xco_fill *fill, const struct xco_network *network,
                      struct xco_fill_flow *flows, size_t count);

#endif
