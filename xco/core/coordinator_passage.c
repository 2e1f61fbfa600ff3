// Judges a gate's counters: pure, time and counters are parameters.
#include "coordinator_passage.h"

#define SHORTEST_NS 300000 // something must have waited so long before an open gate
#define LONGEST_NS 16000000 // and so long where the kernel has often said that it does

void xco_passage_begin(struct xco_gate_state *state, int64_t now_ns) {
    *state = (struct xco_gate_state){
        .looked_ns = now_ns, .since_ns = now_ns, .active_ns = now_ns, .patience_ns = SHORTEST_NS};
}

static void judge_anew(struct xco_gate_state *state, int64_t now_ns) {
    state->since_ns = now_ns;
    state->since_left = state->left;
}

uint64_t xco_passage_take(struct xco_gate_state *state, int64_t now_ns,
                          const struct xco_passage *passage, uint64_t open_bps) {
    int64_t counted = (int64_t)(passage->entered - passage->left - state->lost);
    if (counted < 0) { // more was taken for lost than was
        state->lost = passage->entered - passage->left;
        counted = 0;
    }
    if (passage->entered != state->entered || counted > 0) {
        state->active_ns = now_ns;
    }
    state->entered = passage->entered;
    state->left = passage->left;
    if (counted == 0) {
        state->patience_ns = SHORTEST_NS;
        judge_anew(state, now_ns);
    } else if (open_bps == 0) {
        state->since_ns += now_ns - state->looked_ns;
    }
    state->looked_ns = now_ns;
    return (uint64_t)counted;
}

bool xco_passage_doubts(const struct xco_gate_state *state, uint64_t open_bps) {
    int64_t over_ns = state->looked_ns - state->since_ns;
    uint64_t left = state->left - state->since_left;
    return open_bps > 0 && over_ns >= state->patience_ns &&
           (double)left * 16e9 < (double)over_ns * (double)open_bps;
}

void xco_passage_correct(struct xco_gate_state *state, uint64_t backlog_bytes) {
    uint64_t lost = state->entered - state->left - backlog_bytes;
    if (lost == state->lost) {
        xco_passage_defer(state);
        return;
    }
    state->lost = lost;
    state->patience_ns = SHORTEST_NS;
    judge_anew(state, state->looked_ns);
}

void xco_passage_defer(struct xco_gate_state *state) {
    int64_t longer_ns = 2 * state->patience_ns;
    state->patience_ns = longer_ns < LONGEST_NS ? longer_ns : LONGEST_NS;
    judge_anew(state, state->looked_ns);
}
