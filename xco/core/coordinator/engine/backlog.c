// The backlog of a gate, from counts of bytes that entered and left; pure.
#include "coordinator/engine/backlog.h"

#define STUCK_NS 5000000 // an open gate that passes nothing for this long is checked

static uint64_t counted(const struct xco_gate_state *state, const struct xco_passage *passage) {
    int64_t bytes = (int64_t)(passage->entered - passage->left - state->lost);
    return bytes > 0 ? (uint64_t)bytes : 0;
}

uint64_t xco_backlog_read(struct xco_gate_state *state, const struct xco_passage *passage,
                          int64_t open_ns, int64_t now_ns) {
    uint64_t backlog = counted(state, passage);
    if (passage->left != state->left || state->moved_ns < open_ns) {
        state->moved_ns = passage->left != state->left ? now_ns : open_ns;
    }
    if (passage->entered != state->entered || backlog > 0) {
        state->active_ns = now_ns;
    }
    bool stuck = backlog > 0 && now_ns - state->moved_ns >= STUCK_NS;
    bool emptied = backlog == 0 && state->backlog > 0 && state->lost != 0;
    state->doubtful = stuck || emptied;
    state->entered = passage->entered;
    state->left = passage->left;
    state->backlog = backlog;
    return backlog;
}

uint64_t xco_backlog_correct(struct xco_gate_state *state, const struct xco_passage *before,
                             const struct xco_passage *after, uint64_t backlog_bytes) {
    if (before->entered == after->entered && before->left == after->left) {
        state->lost = after->entered - after->left - backlog_bytes;
    }
    state->backlog = counted(state, after);
    return state->backlog;
}
