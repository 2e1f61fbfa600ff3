/* Ports to containers, by the name of an interface that comes, goes, and comes again. */
#ifndef ZOVN_PROGRAM_VETH_KIND_H
#define ZOVN_PROGRAM_VETH_KIND_H

#include <stdio.h>

#include "forward/line.h"

struct zovn_veth_kind;

/* Make a port, which waits if its interface does not exist or is down. Return NULL with the problem,
 * which holds until the next call. */
struct zovn_veth_kind *zovn_veth_kind_open(struct zovn_forwarder *forwarder,
                                           const struct zovn_port_options *options,
                                           const char **problem);

/* Deliver what was taken, within limits; then restore the interface. */
void zovn_veth_kind_close(struct zovn_veth_kind *veth);

struct zovn_line *zovn_veth_kind_line(struct zovn_veth_kind *veth);

/* See whether the interface is gone, or is back. */
void zovn_veth_kind_tick(struct zovn_veth_kind *veth);

/* Write its state and what the kernel lost, as words. */
void zovn_veth_kind_report(struct zovn_veth_kind *veth, FILE *to);

#endif
