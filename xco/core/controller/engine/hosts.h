// Messages of hosts: joining, reports, leaving, silence.
#ifndef XCO_CONTROLLER_ENGINE_HOSTS_H
#define XCO_CONTROLLER_ENGINE_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/engine/settings.h"
#include "common/message.h"
#include "common/wire.h"

// Whether a message could be obeyed if authentic: from a host, and later than its last. It costs
// far less than the authenticator; counts rejected messages.
bool xco_control_heeds(struct xco_control *core, const struct xco_claim *claim);

// Continues in a higher epoch with all hosts that have joined; false: it is not higher.
bool xco_control_raise(struct xco_control *core, uint64_t now_ns, uint64_t epoch);

// Keeps the sequences that another core of the same epoch has heard, by number of host: recorded
// messages stay older. False: no memory.
bool xco_peers_succeed(struct xco_control *core, const struct xco_control *before);

// Takes a message read at `now_ns` that reached this machine at `arrived_ns`.
enum xco_receive_result xco_peers_receive(struct xco_control *core, uint64_t now_ns,
                                          uint64_t arrived_ns, const struct xco_message *message);

// Restarts a host: ends its grants and welcomes it.
void xco_peers_begin_again(struct xco_control *core, uint64_t now_ns, uint32_t host);

// Handles a host's timer: silence, heartbeat.
void xco_peers_care(struct xco_control *core, uint64_t now_ns, uint32_t host, uint64_t stamp);

#endif
