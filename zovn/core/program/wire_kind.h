/* Ports to other hosts: by an interface, of which the MTU and the map of stations may change. */
#ifndef ZOVN_PROGRAM_WIRE_KIND_H
#define ZOVN_PROGRAM_WIRE_KIND_H

#include "program/interface_port.h"

struct zovn_wire_kind;

/* Make a port, which waits as long as its interface lacks something. Return NULL with the problem, which
 * holds until the next call. */
struct zovn_wire_kind *zovn_wire_kind_open(struct zovn_forwarder *forwarder,
                                           const struct zovn_port_options *options,
                                           const char **problem);

/* Deliver what was taken, within limits; then close it. */
void zovn_wire_kind_close(struct zovn_wire_kind *wire);

/* Return what it has in common with other ports by interface. */
struct zovn_interface_port *zovn_wire_kind_interface(struct zovn_wire_kind *wire);

/* See whether the map or the MTU has changed, and whether the interface is gone, or is back. */
void zovn_wire_kind_tick(struct zovn_wire_kind *wire);

#endif
