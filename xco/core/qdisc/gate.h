// The gates of one interface: creates, opens and closes, queries, removes them.
//
// Every function that talks to the kernel returns 0 or a negative errno. None of them sleeps, but
// they may wait for the kernel's own lock for such requests (RTNL).
#ifndef XCO_QDISC_GATE_H
#define XCO_QDISC_GATE_H

#include <stdint.h>

#include "qdisc/connection.h"

// Replaces the kernel's default root by ours, after removing any previous tree of ours. -EEXIST:
// another program's root is installed, and stays. -ENOENT: see `lacking`. After any error the
// interface is as it was.
int xco_gate_make(struct xco_gate *gate);

// Removes our tree immediately, with its waiting packets. Refused if another root is installed. This
// and the others that exchange the root add to `gate->lost`, or set `lost`.
int xco_gate_remove(struct xco_gate *gate);

// Opens every gate at the line's rate (faster, and the next queue would overflow), waits at most
// `patience_ns` for the held packets to leave, and removes the tree: the kernel restores its
// default. Needs no xco_gate_open; works with any frame size, and if no tree of ours is installed.
// Finds a renamed interface by its index. `lost`: frames, 0 at an error.
int xco_gate_release(const char *interface, uint64_t line_bps, int64_t patience_ns, uint64_t *lost);
int xco_gate_release_index(int interface, uint64_t line_bps, int64_t patience_ns, uint64_t *lost);

// Whether our root is installed on the interface, with the classifier before it if it has one: 1,
// 0, or a negative errno.
int xco_gate_stands(struct xco_gate *gate);

// Whether an interface supports queues with departure times: builds and removes them. 0 or a
// negative errno.
int xco_gate_try_paced(const char *interface, uint64_t *lost);

#endif
