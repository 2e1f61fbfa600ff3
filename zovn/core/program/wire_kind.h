/* Ports to other hosts, by an interface of which the map of stations may change. */
#ifndef ZOVN_PROGRAM_WIRE_KIND_H
#define ZOVN_PROGRAM_WIRE_KIND_H

#include <stdio.h>

#include "forward/line.h"

struct zovn_wire_kind;

/* Make a port; return NULL with the problem, which holds until the next call. */
struct zovn_wire_kind *zovn_wire_kind_open(struct zovn_forwarder *forwarder,
                                           const struct zovn_port_options *options,
                                           const char **problem);

/* Deliver what was taken, within limits; then close it. */
void zovn_wire_kind_close(struct zovn_wire_kind *wire);

struct zovn_line *zovn_wire_kind_line(struct zovn_wire_kind *wire);

/* See whether the map or the MTU has changed, and whether the interface is gone, or is back. */
void zovn_wire_kind_tick(struct zovn_wire_kind *wire);

/* Write its state and what was lost at the interface, as words. */
void zovn_wire_kind_report(struct zovn_wire_kind *wire, FILE *to);

#endif
