// A rate that follows the share of marked packets, for links whose capacity no end knows. Pure.
//
// The law `fair` of HyGenICC between the first and the last hop, as xco/laws/by_marks.py writes it
// to be read (docs/decisions/0077-rates-between-hosts.md).
#ifndef XCO_COORDINATOR_ENGINE_BY_MARKS_H
#define XCO_COORDINATOR_ENGINE_BY_MARKS_H

#include <stdint.h>

// What a sender knows of the way to one destination.
struct xco_marked {
    double rate_bps;
    double target_bps; // what the rate returns to
    double alpha;      // the smoothed share of marked packets
    uint32_t calm;     // periods without marks
};

// Returns a pair at the start: at full rate, as if every packet had been marked so far.
struct xco_marked xco_marked_begin(double link_bps);

// Takes a period in which packets arrived; without any, the pair stays. `link_bps` is the most that
// the rate can be.
void xco_marked_follow(struct xco_marked *pair, double packets, double marks, double link_bps);

#endif
