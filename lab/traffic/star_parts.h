/* What a star consists of. */
#ifndef LAB_TRAFFIC_STAR_PARTS_H
#define LAB_TRAFFIC_STAR_PARTS_H

#include "shares.h"
#include "star.h"
#include "star_output.h"

struct entry {
    char address[ADDRESS_BYTES];
    size_t port;
};

struct port {
    char address[ADDRESS_BYTES];
    struct star_queue arriving;
    struct share shares[CLASSES];
    struct share_limits limits;
    struct star_output output;
    struct star_counts counts;
};

struct star {
    struct star_settings settings;
    struct star_pool pool;
    size_t addresses;
    struct entry table[STAR_ADDRESSES];
    struct port ports[STAR_PORTS];
};

#endif
