// The port before a simulated host: counters of a busy link of 1 Gb/s, drawn by chance.
//
// It is 97 to 100 % full. Up to 30 % of that is foreign, another share every 0.1 to 0.3 s. About
// twice a second a queue stands for 50 ms and four of five packets are marked, else one of 20. The
// counters do not depend on directives.
#ifndef XCO_TOOLS_LOAD_PORT_H
#define XCO_TOOLS_LOAD_PORT_H

#include "common/message.h"

struct xco_load_port {
    struct xco_port counts;
    uint64_t redraw_ns; // when the foreign share changes
    uint64_t foreign_permille;
    uint32_t standing; // further periods in which the queue stands
};

// Counts what has passed since the last call; the first one only begins.
void xco_load_port_pass(struct xco_load_port *port, uint64_t now_ns, uint64_t *random);

#endif
