/* A hash table with chains; entries come from a pool that has enough for each port's limit.
 *
 * A thread that changes it has the lock. One that looks up an address has not: it uses what it found if
 * no change was made meanwhile. */
#include "switch/addresses.h"

#include <stdlib.h>

#define NONE UINT32_MAX
enum { SWEPT_AT_ONCE = 16, TRIES = 4 };

/* What is found between two changes was written before the second one. */
#define READ(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define WRITE(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELEASE)

static void begin_change(struct zovn_addresses *addresses) {
    pthread_mutex_lock(&addresses->lock);
    WRITE(addresses->changes, addresses->changes + 1);
}

static void end_change(struct zovn_addresses *addresses) {
    WRITE(addresses->changes, addresses->changes + 1);
    pthread_mutex_unlock(&addresses->lock);
}

/* The finalizer of MurmurHash3 on a secret: who does not know it cannot make chains long. */
static uint32_t *chain_of(const struct zovn_addresses *addresses, uint64_t key) {
    uint64_t hash = key ^ addresses->seed;
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
    hash = (hash ^ hash >> 33 ^ addresses->seed) * 0xc4ceb9fe1a85ec53u;
    return &addresses->chains[(hash ^ hash >> 33) & addresses->mask];
}

/* While a change is made, a chain may lead to entries that are not in use, or round and round. */
static struct zovn_address *entry_of(const struct zovn_addresses *addresses, uint64_t key) {
    uint32_t at = READ(*chain_of(addresses, key));
    for (uint32_t i = 0; at < addresses->total && i < addresses->total; i++) {
        struct zovn_address *entry = &addresses->all[at];
        uint64_t own = READ(entry->key);
        if (own == key || !own)
            return own ? entry : NULL;
        at = READ(entry->next);
    }
    return NULL;
}

/* What is known of an address. */
struct look {
    struct zovn_address *entry; /* NULL: nothing */
    uint64_t seen_ns, changes;
    uint8_t port;
    bool fixed;
};

static struct look look_once(const struct zovn_addresses *addresses, uint64_t key) {
    struct look look = {.changes = READ(addresses->changes)};
    look.entry = entry_of(addresses, key);
    if (look.entry) {
        look.seen_ns = READ(look.entry->seen_ns);
        look.port = READ(look.entry->port);
        look.fixed = READ(look.entry->fixed);
    }
    return look;
}

static bool holds(const struct zovn_addresses *addresses, const struct look *look) {
    return !(look->changes & 1) &&
           __atomic_load_n(&addresses->changes, __ATOMIC_RELAXED) == look->changes;
}

/* The lock ends what might go on without end. */
static struct look look_up(struct zovn_addresses *addresses, uint64_t key) {
    for (int i = 0; i < TRIES; i++) {
        struct look look = look_once(addresses, key);
        if (holds(addresses, &look))
            return look;
    }
    pthread_mutex_lock(&addresses->lock);
    struct look look = look_once(addresses, key);
    pthread_mutex_unlock(&addresses->lock);
    return look;
}

/* Another thread may have seen the address a moment later than the clock says. */
static bool aged(const struct zovn_addresses *addresses, bool fixed, uint64_t seen_ns,
                 uint64_t now_ns) {
    return !fixed && now_ns > seen_ns && now_ns - seen_ns > addresses->age_ns;
}

static bool is_full(const struct zovn_addresses *addresses, uint32_t port) {
    return READ(addresses->counts[port]) == addresses->each;
}

static void count(struct zovn_addresses *addresses, uint32_t port, uint32_t more) {
    WRITE(addresses->counts[port], addresses->counts[port] + more);
}

static void forget(struct zovn_addresses *addresses, struct zovn_address *entry) {
    uint32_t index = (uint32_t)(entry - addresses->all), *link = chain_of(addresses, entry->key);
    while (*link != index)
        link = &addresses->all[*link].next;
    WRITE(*link, entry->next);
    count(addresses, entry->port, UINT32_MAX);
    WRITE(entry->key, 0);
    WRITE(entry->next, addresses->unused);
    addresses->unused = index;
}

/* The pool has room for all that ports may have, so it has room for one of a port below its limit. */
static struct zovn_address *enter(struct zovn_addresses *addresses, uint64_t key, uint32_t port) {
    uint32_t index = addresses->unused, *chain = chain_of(addresses, key);
    struct zovn_address *entry = &addresses->all[index];
    addresses->unused = entry->next;
    WRITE(entry->next, *chain);
    WRITE(entry->port, (uint8_t)port);
    WRITE(entry->fixed, false);
    WRITE(entry->key, key);
    WRITE(*chain, index);
    count(addresses, port, 1);
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
        .lock = PTHREAD_MUTEX_INITIALIZER,
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

bool zovn_addresses_find(struct zovn_addresses *addresses, uint64_t key, uint64_t now_ns,
                         struct zovn_recall *found) {
    struct look look = look_up(addresses, key);
    if (!look.entry || aged(addresses, look.fixed, look.seen_ns, now_ns))
        return false;
    *found = (struct zovn_recall){key, look.changes, look.port};
    return true;
}

bool zovn_addresses_live(const struct zovn_addresses *addresses, uint32_t place, uint64_t now_ns) {
    const struct zovn_address *entry = &addresses->all[place];
    return READ(entry->key) && !aged(addresses, READ(entry->fixed), READ(entry->seen_ns), now_ns);
}

static enum zovn_learned move(struct zovn_addresses *addresses, struct zovn_address *entry,
                              uint32_t port) {
    count(addresses, entry->port, UINT32_MAX);
    count(addresses, port, 1);
    WRITE(entry->port, (uint8_t)port);
    return ZOVN_MOVED;
}

/* What was found before the lock may have changed, but for the port's own number. */
static enum zovn_learned change(struct zovn_addresses *addresses, uint64_t key, uint32_t port,
                                uint64_t now_ns) {
    struct zovn_address *entry = entry_of(addresses, key);
    if (entry && entry->fixed)
        return ZOVN_NOT_LEARNED;
    enum zovn_learned learned = entry ? move(addresses, entry, port) : ZOVN_LEARNED;
    if (!entry)
        entry = enter(addresses, key, port);
    WRITE(entry->seen_ns, now_ns);
    return learned;
}

/* A guest with addresses beyond its limit has no other one wait for the lock. */
enum zovn_learned zovn_addresses_learn(struct zovn_addresses *addresses, uint64_t key,
                                       uint32_t port, uint64_t now_ns, struct zovn_recall *recall) {
    struct look look = look_up(addresses, key);
    enum zovn_learned learned = ZOVN_KNOWN;
    if (look.entry && look.port == port) {
        WRITE(look.entry->seen_ns, now_ns);
    } else if (look.fixed || is_full(addresses, port)) {
        return ZOVN_NOT_LEARNED;
    } else {
        begin_change(addresses);
        learned = change(addresses, key, port, now_ns);
        look.changes = addresses->changes + 1;
        end_change(addresses);
    }
    if (learned != ZOVN_NOT_LEARNED)
        *recall = (struct zovn_recall){key, look.changes, port};
    return learned;
}

bool zovn_addresses_fix(struct zovn_addresses *addresses, uint64_t key, uint32_t port) {
    struct zovn_address *entry = entry_of(addresses, key);
    bool own = entry && entry->port == port;
    if (!own && ((entry && entry->fixed) || is_full(addresses, port)))
        return false;
    begin_change(addresses);
    if (entry && !own)
        forget(addresses, entry);
    if (!own)
        entry = enter(addresses, key, port);
    WRITE(entry->fixed, true);
    end_change(addresses);
    return true;
}

void zovn_addresses_forget(struct zovn_addresses *addresses, uint32_t port) {
    begin_change(addresses);
    for (uint32_t i = 0; addresses->counts[port] && i < addresses->total; i++)
        if (addresses->all[i].key && addresses->all[i].port == port)
            forget(addresses, &addresses->all[i]);
    end_change(addresses);
}

void zovn_addresses_sweep(struct zovn_addresses *addresses, uint64_t now_ns) {
    for (uint32_t i = 0; i < SWEPT_AT_ONCE; i++) {
        uint32_t place = addresses->swept++ % addresses->total;
        struct zovn_address *entry = &addresses->all[place];
        if (!READ(entry->key) || zovn_addresses_live(addresses, place, now_ns))
            continue;
        begin_change(addresses);
        if (entry->key && !zovn_addresses_live(addresses, place, now_ns))
            forget(addresses, entry);
        end_change(addresses);
    }
}
