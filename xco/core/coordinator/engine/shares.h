// One link's rate shared max-min fairly by demands. Pure.
#ifndef XCO_COORDINATOR_ENGINE_SHARES_H
#define XCO_COORDINATOR_ENGINE_SHARES_H

#include <stddef.h>
#include <stdint.h>

#define XCO_ALL_SATISFIED UINT64_MAX

// Returns the rate that no one exceeds when demands share a capacity: those below it get what they
// demand, the others get this each. XCO_ALL_SATISFIED: the capacity is enough for all.
uint64_t xco_shares_level(const uint64_t *demands_bps, size_t count, uint64_t capacity_bps);

// Returns what the capacity leaves when each gets what it demands, 0: nothing.
uint64_t xco_shares_spare(const uint64_t *demands_bps, size_t count, uint64_t capacity_bps);

#endif
