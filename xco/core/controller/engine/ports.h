// The strategy `gcc`: counters of switch ports, and what hosts may share of each.
//
// SDN-GCC, law `fair` (common/budget.h). Port agents report ports, and each host with a shim its
// own. A port that is not reported counts with the capacity that the topology states.
#ifndef XCO_CONTROLLER_ENGINE_PORTS_H
#define XCO_CONTROLLER_ENGINE_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/engine/state.h"

// Takes the counters of ports; `sequence` is that of the message.
enum xco_receive_result xco_ports_receive(struct xco_control *core, uint64_t now_ns,
                                          const struct xco_message *message);

// Notes what a host has sent to each destination, by its report.
void xco_ports_sent(struct xco_control *core, uint32_t host, const struct xco_report *before,
                    const struct xco_report *now);

// Returns what hosts may share of a directed link, bits/s.
uint64_t xco_ports_left(const struct xco_control *core, uint32_t link, uint64_t now_ns);

// Whether the port of a directed link has been reported lately.
bool xco_ports_known(const struct xco_port_state *port, uint64_t now_ns);

#endif
