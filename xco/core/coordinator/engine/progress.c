// When a loop counts as hung: the guard's one decision, pure.
#include "coordinator/engine/progress.h"

void xco_progress_begin(struct xco_progress *seen, int64_t now_ns) {
    *seen = (struct xco_progress){.looked_ns = now_ns};
}

bool xco_progress_hangs(struct xco_progress *seen, uint64_t turns, int64_t now_ns,
                        int64_t hang_ns) {
    const int64_t passed = now_ns - seen->looked_ns, most = hang_ns / 2;
    const int64_t still = seen->still_ns + (passed < most ? passed : most);
    *seen = (struct xco_progress){
        .turns = turns,
        .looked_ns = now_ns,
        .still_ns = turns == seen->turns ? still : 0,
    };
    return seen->still_ns > (turns == 0 ? XCO_START_HANGS * hang_ns : hang_ns);
}
