// Weighted max-min: links fill up like vessels with water.
#ifndef XCO_CONTROLLER_ENGINE_WATER_H
#define XCO_CONTROLLER_ENGINE_WATER_H

#include "controller/engine/fill.h"

#define XCO_WATER_WEIGHT (UINT64_C(1000000) * UINT16_MAX) // the largest weight of a flow

// Adds to rates by weighted max-min: the link that can give least by weight sets what its flows
// get, but for those that demand less; that is subtracted, and so on. What then no flow demands is
// shared in the same way by those that got what they demand: so it is theirs until another wants
// it. Uses up `left_bps`. Changes the order of flows. Of a link that holds flows back, less than
// 1 bit/s for each of its flows is left; never is more given than it has.
void xco_water_fill(struct xco_fill *fill, const struct xco_network *network,
                    struct xco_fill_flow *flows, size_t count);

#endif
