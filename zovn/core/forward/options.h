/* What an operator chooses for a port, of whichever kind. */
#ifndef ZOVN_FORWARD_OPTIONS_H
#define ZOVN_FORWARD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "switch/settings.h"

enum {
    ZOVN_NAME_BYTES = 33,
    ZOVN_PATH_BYTES = 108,
    ZOVN_INTERFACE_BYTES = 16,
    ZOVN_MOST_STATIC = 16
};

/* Of a port to other hosts; see wire/wire_port.h. */
struct zovn_wire_options {
    char locations[ZOVN_PATH_BYTES]; /* the path of a map; none: the port is no wire */
    uint64_t rate_bps, delay_ns, response_ns, ring_bytes, buffer_bytes;
    uint32_t vni;
    uint8_t local[4];
    uint8_t pfc;
};

struct zovn_port_options {
    char name[ZOVN_NAME_BYTES];
    /* Where its peer is: one of the two, by its kind. */
    char path[ZOVN_PATH_BYTES]; /* of a socket; as long as an address of a socket may be */
    char interface[ZOVN_INTERFACE_BYTES];
    struct zovn_wire_options wire;
    struct zovn_port_settings settings;
    uint8_t addresses[ZOVN_MOST_STATIC][6]; /* static, in the VLAN of frames without a tag */
    uint32_t address_count;
    bool offloads; /* checksums and segments may be left to the receiver */
    uint32_t queues; /* pairs of rings that a guest may use */
    int64_t group; /* that may open its socket; -1: none */
};

#endif
