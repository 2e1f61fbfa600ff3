// Background work in pieces: no gate waits until a table has been walked through.
#ifndef XCO_COORDINATOR_ENGINE_CHORES_H
#define XCO_COORDINATOR_ENGINE_CHORES_H

#include <stdbool.h>
#include <stdint.h>

#define XCO_PIECE 16u          // entries that are worked on in one turn of the loop, at most
#define XCO_CLEAR_NS 300000    // so shortly before a gate's time no entry is begun

// From when on background work may be done: now, or when the gate has been set (`moves_ns`).
int64_t xco_chores_from(int64_t now_ns, int64_t moves_ns);

// A walk through a table that takes several turns.
struct xco_walk {
    unsigned next; // entry
};

// Takes the walk's next entry of `size`; false: it is done, and begins again with the next call.
bool xco_walk_take(struct xco_walk *walk, unsigned size, unsigned *entry);

#endif
