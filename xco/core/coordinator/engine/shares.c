// One link's rate shared max-min fairly by demands. Pure.
#include "coordinator/engine/shares.h"

#include <stdbool.h>

#include "common/least.h"

// Returns the level if those at or below `level` get what they demand, and how many do not.
static uint64_t raised(const uint64_t *demands_bps, size_t count, uint64_t capacity_bps,
                       uint64_t level, size_t *open) {
    uint64_t left = capacity_bps;
    *open = 0;
    for (size_t i = 0; i < count; i++) {
        *open += demands_bps[i] > level;
        left -= demands_bps[i] > level ? 0 : xco_least(left, demands_bps[i]);
    }
    return *open > 0 ? left / *open : XCO_ALL_SATISFIED;
}

// Each pass satisfies some demands, which raises the level for the others, until it satisfies none.
uint64_t xco_shares_level(const uint64_t *demands_bps, size_t count, uint64_t capacity_bps) {
    uint64_t level = count > 0 ? capacity_bps / count : 0;
    size_t open = count + 1, before;
    do {
        before = open;
        const uint64_t next = raised(demands_bps, count, capacity_bps, level, &open);
        level = open < before ? next : level;
    } while (open > 0 && open < before);
    return open > 0 ? level : XCO_ALL_SATISFIED;
}

uint64_t xco_shares_spare(const uint64_t *demands_bps, size_t count, uint64_t capacity_bps) {
    uint64_t left = capacity_bps;
    for (size_t i = 0; i < count; i++) {
        left -= xco_least(left, demands_bps[i]);
    }
    return left;
}
