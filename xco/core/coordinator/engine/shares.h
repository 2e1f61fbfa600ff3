// One link's rate shared by demands: guarantees first, then max-min fairly by weight. Pure.
#ifndef XCO_COORDINATOR_ENGINE_SHARES_H
#define XCO_COORDINATOR_ENGINE_SHARES_H

#include <stddef.h>
#include <stdint.h>

#define XCO_ALL_SATISFIED UINT64_MAX

struct xco_demand {
    uint64_t rate_bps;       // what it can use; 0: nothing
    uint64_t granted_bps;    // of its guarantee: set by xco_shares_grant
    uint32_t guarantee_mbps; // as far as it can use it
    uint32_t weight;         // at least 1
};

// Grants guarantees up to demands, and together what a link of this capacity can promise.
void xco_shares_grant(struct xco_demand *demands, size_t count, uint64_t capacity_bps);

// Returns the rate by weight of 1 that no one exceeds when demands share what their grants leave:
// those below it get what they demand, the others this, times their weight. XCO_ALL_SATISFIED: the
// capacity is enough for all.
uint64_t xco_shares_level(const struct xco_demand *demands, size_t count, uint64_t capacity_bps);

// Returns what a level permits: the grant, and the level times the weight.
uint64_t xco_shares_part(const struct xco_demand *demand, uint64_t level_bps);

// Returns the level if all whose demand is not 0 used all that it permits.
uint64_t xco_shares_even(const struct xco_demand *demands, size_t count, uint64_t capacity_bps);

// Returns what the capacity leaves by weight of 1 when each gets what it demands, 0: nothing.
uint64_t xco_shares_spare(const struct xco_demand *demands, size_t count, uint64_t capacity_bps);

#endif
