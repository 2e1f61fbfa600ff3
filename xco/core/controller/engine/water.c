// Weighted max-min with demands, by exact levels: rates alone are rounded, to whole bits a second.
#include "controller/engine/water.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "common/least.h"
#include "common/message.h"

// Links that cost about as much as a flow of usual path length.
#define LINKS_A_VISIT 16u

// The weights of all flows of a network fit 58 bits, so their products with rates 122.
static_assert(XCO_WATER_WEIGHT <= (UINT64_C(1) << 58) / XCO_ENTRIES_MAX / XCO_HOSTS_MAX,
              "the sum of weights may overflow");
__extension__ typedef unsigned __int128 product;

// A rate for each unit of weight: what a link has left, by the weight of its flows.
struct level {
    uint64_t left_bps;
    uint64_t weight;
};

// Whether a flow is settled at a level.
typedef bool settles(const struct xco_fill *fill, const struct xco_network *network,
                     const struct xco_fill_flow *flow, struct level level);

static struct level level_of(const struct xco_fill *fill, uint32_t link) {
    return (struct level){fill->left_bps[link], fill->load[link]};
}

static bool is_lower(struct level a, struct level b) {
    return (product)a.left_bps * b.weight < (product)b.left_bps * a.weight;
}

// Returns what a level gives a flow, rounded down. No link on its way has a lower level, and each
// weighs at least as much as the flow: so none gives more than it has left.
static uint64_t share(struct level level, uint64_t weight) {
    return (uint64_t)((product)level.left_bps * weight / level.weight);
}

// Returns the lowest level of all loaded links.
static struct level lowest(const struct xco_fill *fill, uint32_t links) {
    struct level least = {UINT64_MAX, 0}; // higher than all
    for (uint32_t link = 0; link < links; link++) {
        if (fill->load[link] > 0 && is_lower(level_of(fill, link), least)) {
            least = level_of(fill, link);
        }
    }
    return least;
}

static uint64_t rest(const struct xco_fill_flow *flow) {
    return flow->demand_bps - flow->rate_bps;
}

// Whether the level gives a flow all that it demands.
static bool is_sated(const struct xco_fill *fill, const struct xco_network *network,
                     const struct xco_fill_flow *flow, struct level level) {
    (void)fill, (void)network;
    return (product)rest(flow) * level.weight <= (product)level.left_bps * flow->weight;
}

// Whether a link on a flow's way can give no more than the level.
static bool is_held(const struct xco_fill *fill, const struct xco_network *network,
                    const struct xco_fill_flow *flow, struct level level) {
    uint32_t path[XCO_PATH_MAX];
    const size_t length = xco_network_path(network, flow->source, flow->destination, path);
    for (size_t i = 0; i < length; i++) {
        if (!is_lower(level, level_of(fill, path[i]))) {
            return true;
        }
    }
    return false;
}

// Settles some flows at a level, moves the others to the front, and returns their number. All are
// checked before one is settled, so their order does not matter.
static size_t settle(struct xco_fill *fill, const struct xco_network *network,
                     struct xco_fill_flow *flows, size_t open, struct level level,
                     settles *settled) {
    size_t kept = 0;
    for (size_t i = 0; i < open; i++) {
        if (!settled(fill, network, &flows[i], level)) {
            const struct xco_fill_flow other = flows[kept];
            flows[kept++] = flows[i];
            flows[i] = other;
        }
    }
    for (size_t i = kept; i < open; i++) {
        const uint64_t rate_bps = xco_least(rest(&flows[i]), share(level, flows[i].weight));
        xco_fill_give(fill, network, &flows[i], rate_bps, flows[i].weight);
    }
    return kept;
}

// Fills links up to what flows demand. Those that demand less than the lowest level gives them come
// first, since what they leave raises it.
static void fill_up(struct xco_fill *fill, const struct xco_network *network,
                    struct xco_fill_flow *flows, size_t open) {
    const uint32_t links = xco_network_directed(network);
    memset(fill->load, 0, links * sizeof *fill->load);
    for (size_t i = 0; i < open; i++) {
        xco_fill_load(fill, network, &flows[i], flows[i].weight);
    }
    while (open > 0) {
        fill->visits += open + links / LINKS_A_VISIT;
        const struct level level = lowest(fill, links);
        const size_t hungry = settle(fill, network, flows, open, level, is_sated);
        open = hungry < open ? hungry : settle(fill, network, flows, open, level, is_held);
    }
}

// Moves the flows that got what they demand to the front, makes them greedy, and returns their
// number.
static size_t lift(struct xco_fill_flow *flows, size_t count) {
    size_t lifted = 0;
    for (size_t i = 0; i < count; i++) {
        if (rest(&flows[i]) == 0) {
            struct xco_fill_flow flow = flows[i];
            flow.demand_bps = XCO_FILL_GREEDY;
            flows[i] = flows[lifted];
            flows[lifted++] = flow;
        }
    }
    return lifted;
}

void xco_water_fill(struct xco_fill *fill, const struct xco_network *network,
                    struct xco_fill_flow *flows, size_t count) {
    fill->visits = 0;
    fill_up(fill, network, flows, count);
    fill_up(fill, network, flows, lift(flows, count));
}
