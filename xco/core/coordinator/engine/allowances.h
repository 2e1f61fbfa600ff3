// What a sender may send to each host, while it lives without a controller. Pure.
#ifndef XCO_COORDINATOR_ENGINE_ALLOWANCES_H
#define XCO_COORDINATOR_ENGINE_ALLOWANCES_H

#include "coordinator/engine/peers.h"
#include "coordinator/engine/state.h"

// Sets what each gate of a host that has fallen back may send: what the destination offers, less
// where links in between mark, and all together no more than the line. Without a recent offer it
// is the safe share. Notes in `peers` what could be sent to each.
void xco_allowances_set(struct xco_peers *peers, struct xco_core *core, int64_t now_ns);

// Returns to how many destinations an offer holds.
unsigned xco_allowances_offered(const struct xco_core *core);

#endif
