/* A hash table with chains; entries come from a pool that has enough for each port's limit. */
#include "switch/addresses.h"

#include <stdlib.h>

#define NONE UINT32_MAX
enum { SWEPT_AT_ONCE = 16 };

/* The finalizer of MurmurHash3 on a secret: who does not know it cannot make chains long. */
static uint32_t *chain_of(const struct zovn_addresses *addresses, uint64_t key) {
    uint64_t hash = key ^ addresses->seed;
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
    hash = (hash ^ hash >> 33 ^ addresses->seed) * 0xc4ceb9fe1a85ec53u;
    return &addresses->chains[(hash ^ hash >> 33) & addresses->mask];
}

static struct zovn_address *entry_of(const struct zovn_addresses *addresses, uint64_t key) {
    uint32_t i = *chain_of(addresses, key);
    while (i != NONE && addresses->all[i].key != key)
        i = addresses->all[i].next;
    return i == NONE ? NULL : &addresses->all[i];
}

static bool aged(const struct zovn_addresses *addresses, const struct zovn_address *entry,
                 uint64_t now_ns) {
    return !entry->fixed && now_ns - entry->seen_ns > addresses->age_ns;
}

static void forget(struct zovn_addresses *addresses, struct zovn_address *entry) {
    uint32_t index = (uint32_t)(entry - addresses->all), *link = chain_of(addresses, entry->key);
    while (*link != index)
        link = &addresses->all[*link].next;
    *link = entry->next;
    addresses->counts[entry->port]--;
    addresses->changes++;
    *entry = (struct zovn_address){.next = addresses->unused};
    addresses->unused = index;
}

/* The pool has room for all that ports may have, so it has room for one of a port below its limit. */
static struct zovn_address *enter(struct zovn_addresses *addresses, uint64_t key, uint32_t port) {
    uint32_t index = addresses->unused, *chain = chain_of(addresses, key);
    struct zovn_address *entry = &addresses->all[index];
    addresses->unused = entry->next;
    *entry = (struct zovn_address){.key = key, .next = *chain, .port = (uint8_t)port};
    *chain = index;
    addresses->counts[port]++;
    addresses->changes++;
    return entry;
}

bool zovn_addresses_init(struct zovn_addresses *addresses, const struct zovn_settings *settings) {
    uint32_t total = ZOVN_MOST_PORTS * settings->addresses, chains = 64;
    while (chains < total)
        chains *= 2;
    *addresses = (struct zovn_addresses){
        .all = calloc(total, sizeof *addresses->all),
        .chains = malloc(chains * sizeof *addresses->chains),
        .mask = chains - 1,
        .total = total,
        .each = settings->addresses,
        .seed = settings->seed,
        .age_ns = settings->age_ns,
    };
    if (!addresses->all || !addresses->chains)
        return false;
    for (uint32_t i = 0; i < chains; i++)
        addresses->chains[i] = NONE;
    for (uint32_t i = 0; i < total; i++)
        addresses->all[i].next = i + 1;
    return true;
}

void zovn_addresses_free(struct zovn_addresses *addresses) {
    free(addresses->all);
    free(addresses->chains);
}

int32_t zovn_addresses_find(const struct zovn_addresses *addresses, uint64_t key, uint64_t now_ns) {
    const struct zovn_address *entry = entry_of(addresses, key);
    return entry && !aged(addresses, entry, now_ns) ? entry->port : -1;
}

bool zovn_addresses_live(const struct zovn_addresses *addresses, uint32_t place, uint64_t now_ns) {
    const struct zovn_address *entry = &addresses->all[place];
    return entry->key && !aged(addresses, entry, now_ns);
}

static enum zovn_learned move(struct zovn_addresses *addresses, struct zovn_address *entry,
                              uint32_t port, uint64_t now_ns) {
    if (entry->fixed || addresses->counts[port] == addresses->each)
        return ZOVN_NOT_LEARNED;
    addresses->counts[entry->port]--;
    addresses->counts[port]++;
    addresses->changes++;
    entry->port = (uint8_t)port;
    entry->seen_ns = now_ns;
    return ZOVN_MOVED;
}

enum zovn_learned zovn_addresses_learn(struct zovn_addresses *addresses, uint64_t key,
                                       uint32_t port, uint64_t now_ns) {
    struct zovn_address *entry = entry_of(addresses, key);
    if (entry && entry->port != port)
        return move(addresses, entry, port, now_ns);
    if (!entry && addresses->counts[port] == addresses->each)
        return ZOVN_NOT_LEARNED;
    enum zovn_learned result = entry ? ZOVN_KNOWN : ZOVN_LEARNED;
    if (!entry)
        entry = enter(addresses, key, port);
    entry->seen_ns = now_ns;
    return result;
}

bool zovn_addresses_fix(struct zovn_addresses *addresses, uint64_t key, uint32_t port) {
    struct zovn_address *entry = entry_of(addresses, key);
    bool own = entry && entry->port == port;
    if (!own && ((entry && entry->fixed) || addresses->counts[port] == addresses->each))
        return false;
    if (entry && !own)
        forget(addresses, entry);
    if (!own)
        entry = enter(addresses, key, port);
    entry->fixed = true;
    return true;
}

void zovn_addresses_forget(struct zovn_addresses *addresses, uint32_t port) {
    for (uint32_t i = 0; i < addresses->total; i++)
        if (addresses->all[i].key && addresses->all[i].port == port)
            forget(addresses, &addresses->all[i]);
}

void zovn_addresses_sweep(struct zovn_addresses *addresses, uint64_t now_ns) {
    for (uint32_t i = 0; i < SWEPT_AT_ONCE; i++) {
        struct zovn_address *entry = &addresses->all[addresses->swept++ % addresses->total];
        if (entry->key && aged(addresses, entry, now_ns))
            forget(addresses, entry);
    }
}
