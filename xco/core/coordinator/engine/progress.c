// When a loop counts as hung: the guard's one decision, pure.
#include "coordinator/engine/progress.h"

void xco_progress_begin(struct xco_progress *seen, int64_t now_ns) {
    *seen = (struct xco_progress){.turns = 0, .since_ns = now_ns};
}

bool xco_progress_hangs(struct xco_progress *seen, uint64_t turns, int64_t now_ns,
                        int64_t hang_ns) {
    if (turns != seen->turns) {
        *seen = (struct xco_progress){.turns = turns, .since_ns = now_ns};
    }
    return now_ns - seen->since_ns > hang_ns;
}
