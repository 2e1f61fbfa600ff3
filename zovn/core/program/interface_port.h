/* Ports by the name of an interface that comes, goes, and comes again. */
#ifndef ZOVN_PROGRAM_INTERFACE_PORT_H
#define ZOVN_PROGRAM_INTERFACE_PORT_H

#include <stdio.h>

#include "forward/line.h"

enum { ZOVN_REFUSAL_BYTES = 256 };

/* What a kind of interfaces can do. */
struct zovn_interface_driver {
    /* Return what a port waits for, as words after the interface's name; NULL: for nothing. Of a driver
     * without it, no port waits. */
    const char *(*missing)(const struct zovn_port_options *options);
    /* Return a port; or NULL with the reason in `problem`, of ZOVN_REFUSAL_BYTES. */
    struct zovn_port *(*open)(const struct zovn_port_options *options, char *problem);
    /* As in a zovn_attachment; NULL: the port is polled. */
    void (*ask)(struct zovn_port *port, bool notify);
    /* Return the file that wakes; NULL: there is none. */
    int (*wake)(const struct zovn_port *port);
    /* Return in a word how far the port is. */
    const char *(*state)(const struct zovn_port *port);
    /* Return whether the interface was removed, if the port has no fault then; NULL: it has. */
    bool (*gone)(const struct zovn_port *port);
    /* Return how many frames the kernel lost before they came to the port: not in the forwarding thread,
     * since the kernel is asked. NULL: the port counts all (`overruns` of ports/port.h). */
    uint64_t (*lost)(const struct zovn_port *port);
    /* Count what waits to be sent as lost: the port is about to be removed. NULL: nothing waits there. */
    void (*end)(struct zovn_port *port);
};

struct zovn_interface_port;

/* Make a port, which waits as long as its interface lacks something. Return NULL with the problem, which
 * holds until the next call. */
struct zovn_interface_port *zovn_interface_port_open(const struct zovn_interface_driver *driver,
                                                     struct zovn_forwarder *forwarder,
                                                     const struct zovn_port_options *options,
                                                     const char **problem);

/* Deliver what was taken, within limits; then restore the interface. */
void zovn_interface_port_close(struct zovn_interface_port *named);

struct zovn_line *zovn_interface_port_line(struct zovn_interface_port *named);

/* Return the port while its interface is attached; else NULL. It holds until the next call of
 * `zovn_interface_port_tick` or `zovn_interface_port_close`. */
struct zovn_port *zovn_interface_port_attached(const struct zovn_interface_port *named);

/* See whether the interface is gone, or is back. */
void zovn_interface_port_tick(struct zovn_interface_port *named);

/* Write its state and what was lost at the interface, as words. */
void zovn_interface_port_report(struct zovn_interface_port *named, FILE *to);

#endif
