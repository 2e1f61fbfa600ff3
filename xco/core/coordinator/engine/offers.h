// What a receiver lets each sender send to it, while it lives without a controller. Pure.
#ifndef XCO_COORDINATOR_ENGINE_OFFERS_H
#define XCO_COORDINATOR_ENGINE_OFFERS_H

#include "coordinator/engine/peers.h"

// Takes the counters of what arrived from each host, and after the last (`peers->count`) from all
// other sources. Computes what the hosts may share of the own port, and offers each a part. Call it
// once a period.
void xco_offers_count(struct xco_peers *peers, int64_t now_ns, int64_t silence_ns,
                      const struct xco_arrived *arrived);

#endif
