// What coordinated senders may share of a port: by its bytes and its marks. Pure.
//
// The law `fair` of SDN-GCC and HyGenICC, as xco/laws/budget.py writes it to be read
// (docs/decisions/0074-a-budget-from-bytes-and-marks.md).
#ifndef XCO_COMMON_BUDGET_H
#define XCO_COMMON_BUDGET_H

#include <stdint.h>

// Differences of a port's counters over a period.
struct xco_budget_period {
    double seconds; // above 0
    double bits;    // that left the port
    double coordinated_bits; // of these, sent by hosts with a shim
    double packets;
    double marks;
    double drops;
};

// What is known of a port.
struct xco_budget {
    double capacity_bps;
    double foreign_bps; // smoothed
    double calm_s;      // since a standing queue was believed
    uint32_t stood;     // periods in a row in which the queue stood
};

// Returns what is known of a port before its first period.
struct xco_budget xco_budget_begin(double nominal_bps);

// Takes a period in. A port that does not mark is congested when it drops.
void xco_budget_observe(struct xco_budget *budget, const struct xco_budget_period *seen,
                        double nominal_bps);

// Returns what coordinated senders may share, bits/s; `aim` is the part of the capacity that is
// given out.
double xco_budget_shared(const struct xco_budget *budget, double nominal_bps, double aim);

#endif
