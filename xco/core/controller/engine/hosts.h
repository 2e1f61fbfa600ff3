// What hosts say: joining, reports, leaving, silence.
#ifndef XCO_CONTROLLER_ENGINE_HOSTS_H
#define XCO_CONTROLLER_ENGINE_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/engine/settings.h"
#include "common/message.h"
#include "common/wire.h"

// Whether a message could be obeyed if it were authentic: from a host, and later than its last. It
// costs far less than the authenticator; what is refused is counted.
bool xco_control_heeds(struct xco_control *core, const struct xco_claim *claim);

// Goes on in a higher epoch, with all hosts that have joined; false: it is not higher.
bool xco_control_raise(struct xco_control *core, uint64_t now_ns, uint64_t epoch);

// Takes a message that is read at `now_ns` and reached this machine at `arrived_ns`.
enum xco_verdict xco_peers_receive(struct xco_control *core, uint64_t now_ns, uint64_t arrived_ns,
                                   const struct xco_message *message);

// Begins a host anew: what it was granted ends, and it is welcomed.
void xco_peers_begin_again(struct xco_control *core, uint64_t now_ns, uint32_t host);

// Looks after a host when its timer is due: silence, heartbeat.
void xco_peers_care(struct xco_control *core, uint64_t now_ns, uint32_t host, uint64_t stamp);

#endif
