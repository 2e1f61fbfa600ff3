/* Which port an address lies behind, for each VLAN: learned, or static. */
#ifndef ZOVN_SWITCH_ADDRESSES_H
#define ZOVN_SWITCH_ADDRESSES_H

#include <endian.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "switch/cache.h"
#include "switch/settings.h"

struct zovn_address {
    uint64_t key; /* the VLAN above the 48 bits of the address; 0: not in use */
    uint64_t seen_ns;
    uint32_t next; /* in its chain, or of those not in use */
    uint8_t port;
    bool fixed;
};

/* Each port has room for its own, so that none can take another's. Threads look up addresses while one
 * of them changes the table, and look again then. */
struct zovn_addresses {
    _Alignas(ZOVN_LINE) struct zovn_address *all;
    uint32_t *chains;
    uint32_t mask; /* of `chains` */
    uint32_t total, each; /* in all; of a port at most */
    uint64_t seed, age_ns;
    uint64_t changes; /* of the port of any address: one is made while this is odd */
    _Alignas(ZOVN_LINE) uint32_t counts[ZOVN_MOST_PORTS];
    uint32_t unused;
    uint32_t swept;
    pthread_mutex_t lock; /* of changes */
};

/* An address that was found, and its port: true until the clock or the table changes. Most frames of a
 * step have the addresses of the frame before. */
struct zovn_recall {
    uint64_t key; /* 0: none */
    uint64_t changes;
    uint32_t port;
};

enum zovn_learned { ZOVN_KNOWN, ZOVN_LEARNED, ZOVN_MOVED, ZOVN_NOT_LEARNED };

bool zovn_addresses_init(struct zovn_addresses *addresses, const struct zovn_settings *settings);
void zovn_addresses_free(struct zovn_addresses *addresses);

static inline uint64_t zovn_address_key(uint16_t vlan, const uint8_t *address) {
    uint32_t high;
    uint16_t low;
    memcpy(&high, address, sizeof high);
    memcpy(&low, address + sizeof high, sizeof low);
    return (uint64_t)vlan << 48 | (uint64_t)be32toh(high) << 16 | be16toh(low);
}

static inline bool zovn_recalls(const struct zovn_addresses *addresses,
                                const struct zovn_recall *recall, uint64_t key) {
    return recall->key == key &&
           recall->changes == __atomic_load_n(&addresses->changes, __ATOMIC_RELAXED);
}

/* Most frames are recalled: not inlined, these cost them nothing. */

/* Find the port of an address; return false if it is not known. */
__attribute__((noinline)) bool zovn_addresses_find(struct zovn_addresses *addresses, uint64_t key,
                                                   uint64_t now_ns, struct zovn_recall *found);

/* Return whether a place of the table has an address that is not too old. */
bool zovn_addresses_live(const struct zovn_addresses *addresses, uint32_t place, uint64_t now_ns);

/* Note that an address sends from a port; `learned` says so then. A static address stays where it is. */
__attribute__((noinline)) enum zovn_learned zovn_addresses_learn(struct zovn_addresses *addresses,
                                                                 uint64_t key, uint32_t port,
                                                                 uint64_t now_ns,
                                                                 struct zovn_recall *learned);

/* Make an address static; return false if it is another port's static one, or there is no room. */
bool zovn_addresses_fix(struct zovn_addresses *addresses, uint64_t key, uint32_t port);

/* Forget all addresses of a port. */
void zovn_addresses_forget(struct zovn_addresses *addresses, uint32_t port);

/* Look at some addresses, and forget those that are too old. One thread does this. */
void zovn_addresses_sweep(struct zovn_addresses *addresses, uint64_t now_ns);

#endif
