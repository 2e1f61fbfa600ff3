/* Two rings of a guest: one for each direction. */
#ifndef ZOVN_PORTS_RING_PAIR_H
#define ZOVN_PORTS_RING_PAIR_H

#include "rings/split_ring.h"

enum { ZOVN_MOST_PAIRS = 8 }; /* of a port */

struct zovn_ring_pair {
    struct zovn_split_ring transmit;
    struct zovn_split_ring receive;
};

#endif
