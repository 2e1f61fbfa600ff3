// Keeps the highest epoch over restarts, in a thread of its own: a slow disk delays no gate.
#ifndef XCO_COORDINATOR_EPOCH_STORE_H
#define XCO_COORDINATOR_EPOCH_STORE_H

#include <stdbool.h>
#include <stdint.h>

struct xco_keeper {
    const char *path; // empty: nothing is kept
    uint64_t wanted;
    uint64_t kept;
    int asks;  // wakes the thread
    int tells; // readable when more is kept
};

// The highest epoch that is obeyed at an instant of CLOCK_REALTIME: a day ahead of this clock.
uint64_t xco_epoch_most(int64_t wall_ns);

// The epoch that a file keeps; 0: none, or one that is higher than `most`, which is damaged.
uint64_t xco_epoch_read(const char *path, uint64_t most);

// Starts the thread; 0 or a negative errno. Its scheduling is the caller's of this moment. `path`
// stays the caller's.
int xco_keeper_start(struct xco_keeper *keeper, const char *path);

// Whether an epoch is durable, so that a lower one is refused after a restart too. One that is not
// is written from now on; this does not wait. One that cannot be written is said, and then obeyed.
bool xco_keeper_has(struct xco_keeper *keeper, uint64_t epoch);

#endif
