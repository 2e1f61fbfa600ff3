/* What an operator chooses for the switch and for each of its ports. */
#ifndef ZOVN_SWITCH_SETTINGS_H
#define ZOVN_SWITCH_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

enum { ZOVN_MOST_PORTS = 72, ZOVN_CLASSES = 8, ZOVN_MOST_VLAN = 4094, ZOVN_MOST_THREADS = 8 };

struct zovn_class_settings {
    uint64_t limit_bytes; /* 0: lossless; else a destination's frames above it are dropped */
    uint64_t mark_bytes;  /* frames of ECN senders are marked above it; 0: never */
    uint32_t weight;      /* 0: strict, before all that have weights, the highest class first */
};

struct zovn_settings {
    struct zovn_class_settings classes[ZOVN_CLASSES];
    uint8_t class_of_priority[8]; /* VLAN priority */
    uint8_t class_of_dscp[64];
    uint64_t stall_ns;   /* a destination that takes nothing for so long is treated as lossy */
    uint64_t age_ns;     /* a learned address that sends nothing for so long is forgotten */
    uint64_t seed;       /* random, so that no guest can choose addresses that collide */
    uint32_t addresses;  /* learned and static ones of each port, at most */
    uint32_t parked;     /* flooded frames of each port, at most */
    uint32_t threads;    /* that step it; each has some of the ports */
};

enum zovn_trust { ZOVN_TRUST_NOTHING, ZOVN_TRUST_PRIORITY, ZOVN_TRUST_DSCP };

struct zovn_port_settings {
    uint64_t vlans[64]; /* a trunk's tagged VLANs, one bit each */
    uint64_t rate_bps;  /* of frames to the port; 0: as fast as it takes them */
    uint16_t vlan;      /* of frames without a tag; 0: a trunk that has none */
    uint8_t trunk;
    uint8_t trust; /* which mark of a frame gives its class; a frame without has the port's */
    uint8_t class;
};

/* Lossless, weights of 1, one class by its port, stall 1 s, ageing 300 s, 64 addresses and 16 parked
 * frames, one thread. */
__attribute__((visibility("default"))) void zovn_settings_default(struct zovn_settings *settings);

/* Return what is wrong with settings, or NULL. */
const char *zovn_settings_problem(const struct zovn_settings *settings);
const char *zovn_port_problem(const struct zovn_port_settings *settings);

#endif
