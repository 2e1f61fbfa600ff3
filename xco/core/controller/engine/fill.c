// Shares links out among flows: equally as in section 3.3 of the paper, or max-min fairly.
#include "controller/engine/fill.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Links that cost about as much as a flow of usual path length.
#define LINKS_A_VISIT 16u

int xco_fill_init(struct xco_fill *fill, const struct xco_network *network) {
    const size_t links = xco_network_directed(network);
    fill->left_bps = calloc(links, sizeof *fill->left_bps);
    fill->load = calloc(links, sizeof *fill->load);
    if (fill->left_bps == NULL || fill->load == NULL) {
        xco_fill_free(fill);
        return -1;
    }
    return 0;
}

void xco_fill_free(struct xco_fill *fill) {
    free(fill->left_bps);
    free(fill->load);
    *fill = (struct xco_fill){0};
}

// Adds to (or subtracts from) the load of every link of a flow's path.
static void load_path(struct xco_fill *fill, const struct xco_network *network,
                      const struct xco_fill_flow *flow, uint64_t weight, bool add) {
    uint32_t path[XCO_PATH_MAX];
    const size_t length = xco_network_path(network, flow->source, flow->destination, path);
    for (size_t i = 0; i < length; i++) {
        fill->load[path[i]] += add ? weight : -weight;
    }
}

// Returns the least that a link of the path gives per unit of weight, rounded down.
static uint64_t least_share(const struct xco_fill *fill, const struct xco_network *network,
                            const struct xco_fill_flow *flow) {
    uint32_t path[XCO_PATH_MAX];
    const size_t length = xco_network_path(network, flow->source, flow->destination, path);
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < length; i++) {
        const uint64_t share = fill->left_bps[path[i]] / fill->load[path[i]];
        least = share < least ? share : least;
    }
    return least;
}

void xco_fill_equal(struct xco_fill *fill, const struct xco_network *network,
                    struct xco_fill_flow *flows, size_t count) {
    memset(fill->load, 0, xco_network_directed(network) * sizeof *fill->load);
    for (size_t i = 0; i < count; i++) {
        load_path(fill, network, &flows[i], 1, true);
    }
    for (size_t i = 0; i < count; i++) {
        flows[i].rate_bps = least_share(fill, network, &flows[i]);
    }
    fill->visits = count;
}

// Returns the least share over all loaded links.
static uint64_t water_level(const struct xco_fill *fill, uint32_t links) {
    uint64_t least = UINT64_MAX;
    for (uint32_t link = 0; link < links; link++) {
        if (fill->load[link] > 0 && fill->left_bps[link] / fill->load[link] < least) {
            least = fill->left_bps[link] / fill->load[link];
        }
    }
    return least;
}

// Gives a flow its final rate and subtracts rate and weight from the links of its path.
static void settle(struct xco_fill *fill, const struct xco_network *network,
                   struct xco_fill_flow *flow, uint64_t level) {
    uint32_t path[XCO_PATH_MAX];
    const size_t length = xco_network_path(network, flow->source, flow->destination, path);
    flow->rate_bps = level * flow->weight;
    for (size_t i = 0; i < length; i++) {
        fill->left_bps[path[i]] -= flow->rate_bps;
        fill->load[path[i]] -= flow->weight;
    }
}

// Settles every flow with a link at the level on its path, moves the others to the front, and
// returns their number. All flows are checked before one is settled, so their order does not
// matter.
static size_t settle_level(struct xco_fill *fill, const struct xco_network *network,
                           struct xco_fill_flow *flows, size_t open, uint64_t level) {
    size_t kept = 0;
    for (size_t i = 0; i < open; i++) {
        if (least_share(fill, network, &flows[i]) > level) {
            const struct xco_fill_flow settled = flows[kept];
            flows[kept++] = flows[i];
            flows[i] = settled;
        }
    }
    for (size_t i = kept; i < open; i++) {
        settle(fill, network, &flows[i], level);
    }
    return kept;
}

void xco_fill_max_min(struct xco_fill *fill, const struct xco_network *network,
                      struct xco_fill_flow *flows, size_t count) {
    const uint32_t links = xco_network_directed(network);
    memset(fill->load, 0, links * sizeof *fill->load);
    for (size_t i = 0; i < count; i++) {
        load_path(fill, network, &flows[i], flows[i].weight, true);
    }
    size_t open = count;
    fill->visits = 0;
    while (open > 0) {
        fill->visits += open + links / LINKS_A_VISIT;
        open = settle_level(fill, network, flows, open, water_level(fill, links));
    }
}
