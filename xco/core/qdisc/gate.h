// The gates of one interface: made, opened and closed, asked for what waits, removed.
//
// Every function that talks to the kernel returns 0 or a negative errno. None of them sleeps; the
// kernel's own lock for such requests (RTNL) is what they may have to wait for.
#ifndef XCO_QDISC_GATE_H
#define XCO_QDISC_GATE_H

#include <net/if.h>

#include "qdisc/tree.h"

struct xco_gate {
    int netlink;
    int packets; // sends the kicks
    struct xco_tree tree;
    char name[IF_NAMESIZE];
    const char *lacking; // after -ENOENT of xco_gate_make: what the kernel does not have
    struct xco_batch batch;
};

// What the kernel tells of one queue.
struct xco_reading {
    uint32_t handle;
    char kind[8]; // of the root: "htb" of a tree; "mq" or "fq" where packets have times of departure
    uint64_t sent_bytes;
    uint32_t backlog_bytes;
};

// Opens the sockets; `tree` gives all but interface and frame, which are looked up by the name.
// -ENODEV: no such interface. -EMSGSIZE: its frames are too large to be gated (MTU above 32000).
int xco_gate_open(struct xco_gate *gate, const char *interface, const struct xco_tree *tree);
void xco_gate_close(struct xco_gate *gate);

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

// Carries out a batch; the first refusal is returned, and its place stored if `place` is not NULL.
int xco_gate_send(struct xco_gate *gate, const struct xco_batch *batch, uint32_t *place);

// Sends questions, and stores the answers, at most `room`; returns how many, or a negative errno.
int xco_gate_ask(struct xco_gate *gate, const struct xco_batch *questions,
                 struct xco_reading *readings, int room);

// Has the kernel look at its queues now: a frame that is dropped by its own class. What waits
// behind a gate that was opened leaves within this call. Fine on an interface that is down.
int xco_gate_kick(struct xco_gate *gate);

// Whether the name means another interface by now, or one with other frames.
bool xco_gate_changed(const struct xco_gate *gate);

// Whether our root stands on the interface, with the classifier before it where it has one: 1, 0, or
// a negative errno.
int xco_gate_stands(struct xco_gate *gate);

#endif
