/* Which port an address lies behind, for each VLAN: learned, or static. */
#ifndef ZOVN_SWITCH_ADDRESSES_H
#define ZOVN_SWITCH_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "switch/settings.h"

struct zovn_address {
    uint64_t key; /* the VLAN above the 48 bits of the address; 0: not in use */
    uint64_t seen_ns;
    uint32_t next; /* in its chain, or of those not in use */
    uint8_t port;
    bool fixed;
};

/* Each port has room for its own, so that none can take another's. */
struct zovn_addresses {
    struct zovn_address *all;
    uint32_t *chains;
    uint32_t mask; /* of `chains` */
    uint32_t unused;
    uint32_t total, each; /* in all; of a port at most */
    uint32_t swept;
    uint32_t counts[ZOVN_MOST_PORTS];
    uint64_t seed, age_ns;
};

enum zovn_learned { ZOVN_KNOWN, ZOVN_LEARNED, ZOVN_MOVED, ZOVN_NOT_LEARNED };

bool zovn_addresses_init(struct zovn_addresses *addresses, const struct zovn_settings *settings);
void zovn_addresses_free(struct zovn_addresses *addresses);

/* Return the port of an address, or -1. */
int32_t zovn_addresses_find(const struct zovn_addresses *addresses, uint16_t vlan,
                            const uint8_t *address, uint64_t now_ns);

/* Return whether a place of the table has an address that is not too old. */
bool zovn_addresses_live(const struct zovn_addresses *addresses, uint32_t place, uint64_t now_ns);

/* Note that an address sends from a port. A static address stays where it is. */
enum zovn_learned zovn_addresses_learn(struct zovn_addresses *addresses, uint16_t vlan,
                                       const uint8_t *address, uint32_t port, uint64_t now_ns);

/* Make an address static; return false if it is another port's static one, or there is no room. */
bool zovn_addresses_fix(struct zovn_addresses *addresses, uint16_t vlan, const uint8_t *address,
                        uint32_t port);

/* Forget all addresses of a port. */
void zovn_addresses_forget(struct zovn_addresses *addresses, uint32_t port);

/* Look at some addresses, and forget those that are too old. */
void zovn_addresses_sweep(struct zovn_addresses *addresses, uint64_t now_ns);

#endif
