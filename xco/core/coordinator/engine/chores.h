// Background work in pieces: no gate waits for a walk through a whole table.
#ifndef XCO_COORDINATOR_ENGINE_CHORES_H
#define XCO_COORDINATOR_ENGINE_CHORES_H

#include <stdbool.h>
#include <stdint.h>

#define XCO_PIECE 16u          // most entries processed in one turn of the loop
#define XCO_CLEAR_NS 300000    // no entry is begun this shortly before a gate's time

// Returns when background work may begin: now, or when the gate has been set (`moves_ns`).
int64_t xco_chores_from(int64_t now_ns, int64_t moves_ns);

// A walk through a table over several turns.
struct xco_walk {
    unsigned next; // entry
};

// Takes the walk's next entry of `size`; false: it is done, and the next call starts over.
bool xco_walk_take(struct xco_walk *walk, unsigned size, unsigned *entry);

#endif
