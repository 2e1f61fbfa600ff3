// One link's rate shared by demands: guarantees first, then max-min fairly by weight. Pure.
#include "coordinator/engine/shares.h"

#include <stdbool.h>

#include "common/least.h"
#include "common/promise.h"

void xco_shares_grant(struct xco_demand *demands, size_t count, uint64_t capacity_bps) {
    const uint64_t promisable = xco_promisable(capacity_bps);
    uint64_t load_mbps = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t most = xco_least(demands[i].rate_bps, promisable);
        demands[i].guarantee_mbps = xco_promise_cut(demands[i].guarantee_mbps, most);
        load_mbps += demands[i].guarantee_mbps;
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t part = xco_promise_part(demands[i].guarantee_mbps, promisable, load_mbps);
        demands[i].granted_bps = xco_least(demands[i].rate_bps, part);
    }
}

static uint64_t times(uint64_t level_bps, uint32_t weight) {
    return level_bps > UINT64_MAX / weight ? UINT64_MAX : level_bps * weight;
}

uint64_t xco_shares_part(const struct xco_demand *demand, uint64_t level_bps) {
    const uint64_t share = times(level_bps, demand->weight);
    return share > UINT64_MAX - demand->granted_bps ? UINT64_MAX : demand->granted_bps + share;
}

// Returns what grants leave.
static uint64_t beyond(const struct xco_demand *demands, size_t count, uint64_t capacity_bps) {
    uint64_t left = capacity_bps;
    for (size_t i = 0; i < count; i++) {
        left -= demands[i].granted_bps;
    }
    return left;
}

// Returns the level if those at or below `level` get what they demand, and the weight of those who
// do not.
static uint64_t raised(const struct xco_demand *demands, size_t count, uint64_t left_bps,
                       uint64_t level, uint64_t *open) {
    uint64_t left = left_bps;
    *open = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t more = demands[i].rate_bps - demands[i].granted_bps;
        const bool exceeds = more > times(level, demands[i].weight);
        *open += exceeds ? demands[i].weight : 0;
        left -= exceeds ? 0 : xco_least(left, more);
    }
    return *open > 0 ? left / *open : XCO_ALL_SATISFIED;
}

static uint64_t weight_of(const struct xco_demand *demands, size_t count) {
    uint64_t weight = 0;
    for (size_t i = 0; i < count; i++) {
        weight += demands[i].rate_bps > 0 ? demands[i].weight : 0;
    }
    return weight;
}

uint64_t xco_shares_even(const struct xco_demand *demands, size_t count, uint64_t capacity_bps) {
    const uint64_t weight = weight_of(demands, count);
    return weight > 0 ? beyond(demands, count, capacity_bps) / weight : 0;
}

// Each pass satisfies some demands, which raises the level for the others, until it satisfies none.
uint64_t xco_shares_level(const struct xco_demand *demands, size_t count, uint64_t capacity_bps) {
    const uint64_t left = beyond(demands, count, capacity_bps);
    uint64_t level = xco_shares_even(demands, count, capacity_bps);
    uint64_t open = UINT64_MAX, before;
    do {
        before = open;
        const uint64_t next = raised(demands, count, left, level, &open);
        level = open < before ? next : level;
    } while (open > 0 && open < before);
    return open > 0 ? level : XCO_ALL_SATISFIED;
}

uint64_t xco_shares_spare(const struct xco_demand *demands, size_t count, uint64_t capacity_bps) {
    const uint64_t weight = weight_of(demands, count);
    uint64_t left = capacity_bps;
    for (size_t i = 0; i < count; i++) {
        left -= xco_least(left, demands[i].rate_bps);
    }
    return weight > 0 ? left / weight : 0;
}
