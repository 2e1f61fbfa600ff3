// Talks to the kernel about the queues of one interface: sends requests, asks, and kicks.
//
// Every function that talks to the kernel returns 0 or a negative errno. None of them sleeps; the
// kernel's own lock for such requests (RTNL) is what they may have to wait for.
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
    const char *lacking; // after -ENOENT of xco_gate_make: what the kernel does not have
    struct xco_batch batch;
};

// Opens the sockets; `tree` gives all but interface and frame, which are looked up by the name.
// -ENODEV: no such interface. -EMSGSIZE: its frames are too large to be gated (MTU above 32000).
int xco_gate_open(struct xco_gate *gate, const char *interface, const struct xco_tree *tree);
void xco_gate_close(struct xco_gate *gate);

// Looks up index and largest frame by the name.
int xco_gate_look_up(struct xco_gate *gate);

// Opens the sockets on the interface that was looked up.
int xco_gate_open_sockets(struct xco_gate *gate);

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

#endif
