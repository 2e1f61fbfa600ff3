// The gates of one interface: made, opened and closed, asked for what waits, removed.
//
// Every function that talks to the kernel returns 0 or a negative errno. None of them sleeps; the
// kernel's own lock for such requests (RTNL) is what they may have to wait for.
#ifndef XCO_QDISC_GATE_H
#define XCO_QDISC_GATE_H

#include <stdint.h>

#include "qdisc/connection.h"

// Replaces the kernel's default root by ours; what of ours stood there before is removed first.
// -EEXIST: somebody else's root stands there, and still does. -ENOENT: see `lacking`. After any
// error the interface is as it was.
int xco_gate_make(struct xco_gate *gate);

// Removes our tree at once, with what waits in it. Refused if another root stands there.
int xco_gate_remove(struct xco_gate *gate);

// Opens every gate at the line's rate (faster, and the next queue would overflow), waits at most
// `patience_ns` for what they held to leave, and removes the tree: the kernel puts its default
// back. Needs no gate that is open; frames of any size will do, and it is fine if nothing of ours
// stands there. By its index an interface is found that was renamed since.
int xco_gate_release(const char *interface, uint64_t line_bps, int64_t patience_ns);
int xco_gate_release_index(int interface, uint64_t line_bps, int64_t patience_ns);

// Whether our root stands on the interface, with the classifier before it where it has one: 1, 0, or
// a negative errno.
int xco_gate_stands(struct xco_gate *gate);

// Whether queues of times of departure can be had on an interface: builds and removes them. 0 or a
// negative errno.
int xco_gate_try_paced(const char *interface);

#endif
