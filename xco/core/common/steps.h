// The unit in which the published laws of SDN-GCC and HyGenICC change rates. Pure.
#ifndef XCO_COMMON_STEPS_H
#define XCO_COMMON_STEPS_H

#include <math.h>

#define XCO_STEP_PERIOD_NS 10000000u // of both laws; taken for the round trip as well
#define XCO_STEP_PACKET_BYTES 1514   // of an ordinary packet
#define XCO_STEP_LEAST 0.01          // of the line, whatever was marked (Rmin)
#define XCO_STEP_INACTIVE_NS 1000000000u // what sent nothing for this long begins again

// Returns one packet a round trip, bits/s; at most the line (`scale` of xco/laws/hygenicc.py).
static inline double xco_step_bps(double line_bps) {
    return fmin(line_bps, XCO_STEP_PACKET_BYTES * 8 / (XCO_STEP_PERIOD_NS / 1e9));
}

#endif
