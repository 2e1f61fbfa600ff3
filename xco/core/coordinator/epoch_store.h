// Persists the highest epoch in a thread of its own: a slow disk delays no gate.
#ifndef XCO_COORDINATOR_EPOCH_STORE_H
#define XCO_COORDINATOR_EPOCH_STORE_H

#include <stdbool.h>
#include <stdint.h>

struct xco_epoch_store {
    const char *path; // empty: nothing is persisted
    uint64_t wanted;
    uint64_t kept;
    int asks;  // wakes the thread
    int tells; // readable after a write
};

// The highest epoch obeyed at an instant of CLOCK_REALTIME: a day ahead of this clock.
uint64_t xco_epoch_most(int64_t wall_ns);

// Returns the epoch in a file; 0: none, or one higher than `most`, which is damaged.
uint64_t xco_epoch_read(const char *path, uint64_t most);

// Starts the thread with the caller's present scheduling; 0 or a negative errno. The caller keeps
// ownership of `path`.
int xco_epoch_store_start(struct xco_epoch_store *store, const char *path);

// Whether an epoch is durable, so that lower ones are rejected after a restart too. If not, the
// thread writes it; this call does not wait. An epoch that cannot be written is logged, and then
// obeyed.
bool xco_epoch_store_has(struct xco_epoch_store *store, uint64_t epoch);

#endif
