// Background work in pieces: when it is permitted, and where a walk through a table resumes; pure.
#include "coordinator/engine/chores.h"

int64_t xco_chores_from(int64_t now_ns, int64_t moves_ns) {
    return moves_ns - now_ns < XCO_CLEAR_NS && moves_ns > now_ns ? moves_ns : now_ns;
}

bool xco_walk_take(struct xco_walk *walk, unsigned size, unsigned *entry) {
    if (walk->next >= size) {
        walk->next = 0;
        return false;
    }
    *entry = walk->next++;
    return true;
}
