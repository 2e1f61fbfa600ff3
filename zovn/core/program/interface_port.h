/* Ports by the name of an interface that comes, goes, and comes again. */
#ifndef ZOVN_PROGRAM_INTERFACE_PORT_H
#define ZOVN_PROGRAM_INTERFACE_PORT_H

#include <stdio.h>

#include "forward/line.h"

enum { ZOVN_REFUSAL_BYTES = 256 };

/* What a kind of interfaces can do. */
struct zovn_interface_driver {
    /* Whether it is not too early for a port: the interface is there, or need not be. */
    bool (*possible)(const char *interface);
    /* Return a port; or NULL with the reason in `problem`, of ZOVN_REFUSAL_BYTES. */
    struct zovn_port *(*open)(const char *interface, char *problem);
    /* Return in a word how far the port is. */
    const char *(*state)(const struct zovn_port *port);
    /* Return how many frames the kernel lost before they came to the port. */
    uint64_t (*lost)(const struct zovn_port *port);
    /* Count what waits to be sent as lost: the port is about to be removed. NULL: nothing waits there. */
    void (*end)(struct zovn_port *port);
};

struct zovn_interface_port;

/* Make a port, which waits as long as its interface is not possible. Return NULL with the problem, which
 * holds until the next call. */
struct zovn_interface_port *zovn_interface_port_open(const struct zovn_interface_driver *driver,
                                                     struct zovn_forwarder *forwarder,
                                                     const struct zovn_port_options *options,
                                                     const char **problem);

/* Deliver what was taken, within limits; then restore the interface. */
void zovn_interface_port_close(struct zovn_interface_port *named);

struct zovn_line *zovn_interface_port_line(struct zovn_interface_port *named);

/* See whether the interface is gone, or is back. */
void zovn_interface_port_tick(struct zovn_interface_port *named);

/* Write its state and what was lost at the interface, as words. */
void zovn_interface_port_report(struct zovn_interface_port *named, FILE *to);

#endif
