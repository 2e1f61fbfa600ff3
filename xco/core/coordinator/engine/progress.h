// When a loop counts as hung: the guard's one decision, pure.
#ifndef XCO_COORDINATOR_ENGINE_PROGRESS_H
#define XCO_COORDINATOR_ENGINE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#define XCO_START_HANGS 10 // a loop may take this many times as long to begin its first turn

struct xco_progress {
    uint64_t turns;
    int64_t looked_ns;
    int64_t still_ns; // since the last turn seen
};

void xco_progress_begin(struct xco_progress *seen, int64_t now_ns);

// Takes the loop's number of turns; returns whether it made none for longer than `hang_ns`. Between
// two looks half of that passes at most: when the guard itself had no CPU, the loop had none either.
bool xco_progress_hangs(struct xco_progress *seen, uint64_t turns, int64_t now_ns, int64_t hang_ns);

#endif
