/* The Ethernet addresses of the other hosts, by ARP: asked for before they are needed. Pure. */
#ifndef ZOVN_WIRE_NEIGHBOURS_H
#define ZOVN_WIRE_NEIGHBOURS_H

#include "wire/locations.h"
#include "wire/vxlan.h"

struct zovn_neighbours {
    uint32_t count;
    uint32_t latest; /* that was looked for */
    struct zovn_neighbour {
        struct zovn_endpoint endpoint;
        uint64_t ask_ns; /* when it is to be asked for */
        bool known;
    } of[ZOVN_MOST_HOSTS]; /* by the numbers of a map's hosts */
};

/* Take the hosts of a map; what is known of those of the old one stays. */
void zovn_neighbours_set(struct zovn_neighbours *neighbours,
                         const struct zovn_locations *locations);

/* Return whether one of them has this address. */
bool zovn_neighbours_has(struct zovn_neighbours *neighbours, const uint8_t address[4]);

/* Note who sent ARP. */
void zovn_neighbours_learn(struct zovn_neighbours *neighbours, const struct zovn_endpoint *sender,
                           uint64_t now_ns);

/* Return the number of a host that is to be asked for now, but not of `self`; -1: none. */
int32_t zovn_neighbours_due(const struct zovn_neighbours *neighbours, const uint8_t self[4],
                            uint64_t now_ns);

/* Note that it was. */
void zovn_neighbours_asked(struct zovn_neighbours *neighbours, uint32_t number, uint64_t now_ns);

#endif
