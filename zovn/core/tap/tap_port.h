/* A port to the kernel's end of a TAP interface. It is lossy: when the queue of the interface is full,
 * the kernel drops what it sends, whatever the port does.
 *
 * The interface is made if it does not exist, and then goes with the port. Nothing is left unfinished: the kernel
 * computes checksums and segments itself. */
#ifndef ZOVN_TAP_TAP_PORT_H
#define ZOVN_TAP_TAP_PORT_H

#include "ports/port.h"

enum { ZOVN_TAP_PROBLEM = 128 };

/* Return a port; or NULL with the reason in `problem`, of ZOVN_TAP_PROBLEM bytes. */
struct zovn_port *zovn_tap_port_new(const char *interface, char *problem);

/* Return how many frames the kernel dropped at the interface's full queue since the port began. */
uint64_t zovn_tap_port_lost(const struct zovn_port *port);

#endif
