// Permission for background work.
#include "coordinator/background.h"

#include "coordinator/engine/decide.h"

int64_t xco_background_from(const struct xco_coordinator *c, int64_t now_ns) {
    return xco_chores_from(now_ns, c->present ? xco_core_moves(&c->core, now_ns) : XCO_NEVER);
}

bool xco_background_goes_on(const struct xco_coordinator *c, unsigned done) {
    int64_t now_ns = xco_now_ns();
    return done < XCO_PIECE && xco_background_from(c, now_ns) == now_ns;
}
