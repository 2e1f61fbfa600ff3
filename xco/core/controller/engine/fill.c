// Shares links out among flows: equally as in section 3.3 of the paper, or what is guaranteed.
#include "controller/engine/fill.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/least.h"
#include "common/promise.h"

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

void xco_fill_load(struct xco_fill *fill, const struct xco_network *network,
                   const struct xco_fill_flow *flow, uint64_t weight) {
    uint32_t path[XCO_PATH_MAX];
    const size_t length = xco_network_path(network, flow->source, flow->destination, path);
    for (size_t i = 0; i < length; i++) {
        fill->load[path[i]] += weight;
    }
}

void xco_fill_give(struct xco_fill *fill, const struct xco_network *network,
                   struct xco_fill_flow *flow, uint64_t rate_bps, uint64_t weight) {
    uint32_t path[XCO_PATH_MAX];
    const size_t length = xco_network_path(network, flow->source, flow->destination, path);
    flow->rate_bps += rate_bps;
    for (size_t i = 0; i < length; i++) {
        fill->left_bps[path[i]] -= rate_bps;
        fill->load[path[i]] -= weight;
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
        least = xco_least(least, share);
    }
    return least;
}

void xco_fill_equal(struct xco_fill *fill, const struct xco_network *network,
                    struct xco_fill_flow *flows, size_t count) {
    memset(fill->load, 0, xco_network_directed(network) * sizeof *fill->load);
    for (size_t i = 0; i < count; i++) {
        xco_fill_load(fill, network, &flows[i], 1);
    }
    for (size_t i = 0; i < count; i++) {
        flows[i].rate_bps = least_share(fill, network, &flows[i]);
    }
    fill->visits = count;
}

// Cuts a guarantee to what the flow demands and the links of the path have left, so that one that
// is too large leaves half of theirs to the others.
static void cut(const struct xco_fill *fill, const struct xco_network *network,
                struct xco_fill_flow *flow) {
    uint32_t path[XCO_PATH_MAX];
    const size_t length = xco_network_path(network, flow->source, flow->destination, path);
    for (size_t i = 0; i < length; i++) {
        const uint64_t most = xco_least(flow->demand_bps, xco_promisable(fill->left_bps[path[i]]));
        flow->guarantee_mbps = xco_promise_cut(flow->guarantee_mbps, most);
    }
}

// Returns the part of a guarantee that is demanded and that every link of the path can give.
static uint64_t granted(const struct xco_fill *fill, const struct xco_network *network,
                        const struct xco_fill_flow *flow) {
    uint32_t path[XCO_PATH_MAX];
    const size_t length = xco_network_path(network, flow->source, flow->destination, path);
    uint64_t least = flow->demand_bps;
    for (size_t i = 0; i < length; i++) {
        const uint32_t link = path[i];
        least = xco_least(least,
                          xco_promise_part(flow->guarantee_mbps,
                                           xco_promisable(fill->left_bps[link]), fill->load[link]));
    }
    return least;
}

static bool is_promised(const struct xco_fill_flow *flows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (flows[i].guarantee_mbps > 0) {
            return true;
        }
    }
    return false;
}

void xco_fill_guarantees(struct xco_fill *fill, const struct xco_network *network,
                         struct xco_fill_flow *flows, size_t count) {
    if (!is_promised(flows, count)) {
        return;
    }
    memset(fill->load, 0, xco_network_directed(network) * sizeof *fill->load);
    for (size_t i = 0; i < count; i++) {
        cut(fill, network, &flows[i]);
        xco_fill_load(fill, network, &flows[i], flows[i].guarantee_mbps);
    }
    for (size_t i = 0; i < count; i++) {
        flows[i].granted_bps = granted(fill, network, &flows[i]);
    }
    for (size_t i = 0; i < count; i++) {
        xco_fill_give(fill, network, &flows[i], flows[i].granted_bps, 0);
    }
}
