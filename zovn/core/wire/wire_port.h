/* A port to other hosts: VXLAN over one interface, with PFC sent and obeyed for each class.
 *
 * Frames from the wire are held for each class until they are forwarded; above a threshold the class
 * is paused at the peer. Frames to the wire wait in a ring for each class, which the peer may pause.
 * A station's host comes from a map (wire/locations.h). The interface needs an address, and stays the
 * kernel's for everything else. docs/howto/zovn-wire.md says how to set it up. */
#ifndef ZOVN_WIRE_WIRE_PORT_H
#define ZOVN_WIRE_WIRE_PORT_H

#include "ports/port.h"
#include "wire/locations.h"

#pragma GCC visibility push(default)

struct zovn_wire_settings {
    const char *interface;
    const char *locations; /* the path of the map */
    uint64_t rate_bps;     /* of the line */
    uint64_t delay_ns;     /* of the cable, one way */
    uint64_t response_ns;  /* until a pause is sent and obeyed, of both sides together */
    uint64_t ring_bytes;   /* that may wait below either end, which no pause stops */
    uint64_t buffer_bytes; /* of each class, in bytes of the line */
    uint32_t vni;
    uint8_t local[4];
    uint8_t pfc;   /* classes that are paused, as bits */
    uint8_t class; /* of which frames without an outer tag take the buffer */
};

/* Return what an interface lacks for a port, as words after its name, that may come by itself; or NULL. */
const char *zovn_wire_port_missing(const char *interface, const uint8_t local[4]);

/* Return a port, or NULL with the reason in `problem`, of 256 bytes. */
struct zovn_port *zovn_wire_port_new(const struct zovn_wire_settings *settings, char *problem);

/* Return a file that becomes readable when something came or is due; it is never read. */
int zovn_wire_port_wake(const struct zovn_port *port);

/* Keep that file's clock up to date, or do not, while the port is stepped all the time. */
void zovn_wire_port_ask(struct zovn_port *port, bool notify);

/* Return the MTU that the interface has now; 0: it is not known. The kernel may have this wait, so it is
 * for another thread than the one that steps the port. */
uint32_t zovn_wire_port_mtu(const struct zovn_port *port);

/* Refuse frames that are too long for an MTU from now on. What exceeds the MTU of which the port was made
 * has no effect. */
void zovn_wire_port_limit(struct zovn_port *port, uint32_t mtu);

/* The port is about to be removed: what waits to be sent counts as lost from now on (`overruns` of
 * ports/port.h), as what the interface refuses as too long always does. */
void zovn_wire_port_end(struct zovn_port *port);

/* Return whether the interface was removed: the port is of no use then. */
bool zovn_wire_port_gone(const struct zovn_port *port);

/* Read the map again; return false with the reason in `problem`: the old one then stays. */
bool zovn_wire_port_locate(struct zovn_port *port, const char *path, char *problem);

/* Use another map, which is the port's from then on; return the old one, which is the caller's. */
struct zovn_locations *zovn_wire_port_relocate(struct zovn_port *port,
                                               struct zovn_locations *locations);

#pragma GCC visibility pop
#endif
