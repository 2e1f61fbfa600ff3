// Connection to the kernel about the queues of one interface: sends requests, queries, and kicks.
//
// Every function that talks to the kernel returns 0 or a negative errno. None of them sleeps, but
// they may wait for the kernel's own lock for such requests (RTNL).
#ifndef XCO_QDISC_CONNECTION_H
#define XCO_QDISC_CONNECTION_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "qdisc/answer.h"
#include "qdisc/layout.h"
#include "qdisc/message.h"

struct xco_gate {
    int netlink;
    int packets; // sends the kicks
    struct xco_tree tree;
    char name[IF_NAMESIZE];
    uint64_t lost;       // frames, while roots were exchanged (qdisc/lost.h)
    const char *lacking; // after -ENOENT of xco_gate_make: the feature that the kernel lacks
    struct xco_batch batch;
};

// Opens the sockets; `tree` gives everything but interface and frame, which are looked up by the
// name. -ENODEV: no such interface. -EMSGSIZE: its frames are too large for gates (MTU above
// 32000).
int xco_gate_open(struct xco_gate *gate, const char *interface, const struct xco_tree *tree);
void xco_gate_close(struct xco_gate *gate);

// Looks up index and largest frame by the name.
int xco_gate_look_up(struct xco_gate *gate);

// Opens the sockets on the interface that was looked up.
int xco_gate_open_sockets(struct xco_gate *gate);

// Carries out a batch; returns the first refusal, and stores its place if `place` is not NULL.
int xco_gate_send(struct xco_gate *gate, const struct xco_batch *batch, uint32_t *place);

// Sends queries, and stores the answers, at most `room`; returns their number, or a negative errno.
int xco_gate_ask(struct xco_gate *gate, const struct xco_batch *questions,
                 struct xco_reading *readings, int room);

// Makes the kernel look at its queues now: sends a frame that its own class drops. Packets that
// wait behind an opened gate leave within this call. Harmless on an interface that is down.
int xco_gate_kick(struct xco_gate *gate);

// Whether the name now means another interface, or one with another frame size.
bool xco_gate_changed(const struct xco_gate *gate);

#endif
