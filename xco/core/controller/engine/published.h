// SDN-GCC as published: marks take units of a source's rate, calm periods give them back. Pure.
//
// The law of xco/laws/gcc.py, with the errata of docs/decisions/0073-errata-of-sdn-gcc.md.
#ifndef XCO_CONTROLLER_ENGINE_PUBLISHED_H
#define XCO_CONTROLLER_ENGINE_PUBLISHED_H

#include <stdbool.h>
#include <stdint.h>

// What one host sends to another.
struct xco_source {
    double rate_bps;
    uint64_t sent_ns;      // when it sent last
    uint64_t congested_ns; // when congestion was reported last; 0: never
    uint16_t destination;
};

// Takes a port's report of the source's marks (Algorithm 3, lines 11 to 19). They count by the time
// since the report before, which is a period at least.
void xco_source_notified(struct xco_source *source, double marks, uint64_t now_ns, double unit_bps,
                         uint64_t period_ns);

// Lets a source without congestion for `calm_ns` rise by a unit, up to its share of the line
// (Algorithm 3, lines 23 to 33); false: it is inactive.
bool xco_source_updated(struct xco_source *source, uint64_t now_ns, double share_bps,
                        double unit_bps, uint64_t calm_ns);

#endif
