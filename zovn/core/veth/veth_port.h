/* A port to a namespace or container: the host's end of a veth, without loss (AF_XDP).
 *
 * The port itself runs the NAPI that takes frames from the container, and only when all that this may
 * bring has room. Else the veth's ring of 256 fills; the kernel then stops the container's queue, and
 * that the sockets. Frames to the container wait while its ring is full. Needs Linux 6.16, and
 * of the container's end: GRO on, checksums off, a qdisc that holds what its sockets may send
 * (docs/howto/zovn-veth.md). The first frame from the container passes the host's IP input, as UDP to port 31343.
 *
 * While a port is not stepped nothing is lost for ten seconds; then the kernel polls by itself. */
#ifndef ZOVN_VETH_VETH_PORT_H
#define ZOVN_VETH_VETH_PORT_H

#include "ports/port.h"

#pragma GCC visibility push(default)

enum { ZOVN_VETH_PROBLEM = 256 };

enum zovn_veth_state {
    ZOVN_VETH_SILENT, /* the container has sent nothing yet */
    ZOVN_VETH_FIRST, /* its first frame is on its way; if it stays so, the host's firewall drops it */
    ZOVN_VETH_RUNS,
    ZOVN_VETH_GONE, /* the interface was removed; the port has a fault as well */
};

/* Return a port, or NULL with the reason in `problem`, of ZOVN_VETH_PROBLEM bytes. The
 * interface must be up, in the calling thread's network namespace. */
struct zovn_port *zovn_veth_port_new(const char *interface, char *problem);

/* Return whether there is such an interface, and it is up: else it is too early for a port. */
bool zovn_veth_port_possible(const char *interface);

enum zovn_veth_state zovn_veth_port_state(const struct zovn_port *port);

/* Return how many frames the kernel lost: from the container, if the port was not stepped for ten seconds;
 * to it, while its end was down. */
uint64_t zovn_veth_port_lost(const struct zovn_port *port);

/* The port is about to be removed: what the container has no room for counts as lost from now on
 * (`overruns` of ports/port.h). */
void zovn_veth_port_end(struct zovn_port *port);

enum zovn_veth_released {
    ZOVN_VETH_REFUSED, /* `problem` says why */
    ZOVN_VETH_CLEAN, /* nothing was left */
    ZOVN_VETH_RELEASED,
};

/* Undo what a killed process left at an interface. */
enum zovn_veth_released zovn_veth_release(const char *interface, char *problem);

#pragma GCC visibility pop
#endif
