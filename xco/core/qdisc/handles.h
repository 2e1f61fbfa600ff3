// The handles of what is behind a gate, and the limits of its rates.
#ifndef XCO_QDISC_HANDLES_H
#define XCO_QDISC_HANDLES_H

#define SHARE(gate) ((0x7e00u + (gate)) << 16)
#define CLASS_FLOW(gate, flow) (SHARE(gate) | (0x10u + (flow)))

#define XCO_UNLIMITED_BPS 1000000000000u
#define XCO_SLOWEST_BPS 8000u

#endif
