// Which host has which address: the first that claims it; and how every host learns of that.
//
// Every host reports the addresses behind it (PLACES), and hears those behind the others (MAP). An
// address that two hosts claim stays with the first, until that one withdraws it or leaves. MAP also
// names the hosts that have reported all of theirs: a controller that has just started knows nothing
// of a host of which no coordinator runs, and the others must not forget what is there.
#include "controller/engine/claims.h"

#include <stdlib.h>

#include "controller/engine/outbox.h"

#define WHERE_ROOM 65536u // total number of addresses
#define CLAIMS_ROOM 1024u // addresses per host
#define HEED_NS 1000000u // shortest interval between two messages taken from a host
#define AGAIN_NS 20000000u

bool xco_claims_init(struct xco_control *core) {
    return xco_place_log_init(&core->where, WHERE_ROOM);
}

void xco_claims_free(struct xco_control *core) {
    xco_place_log_free(&core->where);
    for (uint32_t host = 0; core->peers != NULL && host < core->network.hosts; host++) {
        if (core->peers[host] != NULL && core->peers[host]->claims != NULL) {
            xco_place_log_free(&core->peers[host]->claims->log);
            xco_place_reader_free(&core->peers[host]->claims->reader);
            free(core->peers[host]->claims);
        }
    }
}

static struct xco_claims *find_claims(struct xco_control *core, uint32_t host) {
    struct xco_peer *peer = core->peers[host];
    if (peer->claims == NULL) {
        peer->claims = calloc(1, sizeof *peer->claims);
        if (peer->claims == NULL || !xco_place_log_init(&peer->claims->log, CLAIMS_ROOM) ||
            !xco_place_reader_init(&peer->claims->reader, CLAIMS_ROOM)) {
            core->failed = true;
            return NULL;
        }
    }
    return peer->claims;
}

static bool claims(const struct xco_control *core, uint32_t host, const struct xco_place *place) {
    const struct xco_peer *peer = core->peers[host];
    return peer != NULL && peer->joined && peer->claims != NULL &&
           xco_place_log_find(&peer->claims->log, place) == host;
}

static uint64_t number_of(const struct xco_place *place) {
    const size_t bytes = place->kind == XCO_PLACE_MAC ? 6 : sizeof place->address;
    uint64_t number = 0;
    for (size_t i = bytes == 6 ? 0 : bytes - 8; i < bytes; i++) {
        number = number << 8 | place->address[i];
    }
    return number;
}

// Keeps the last refused claim, for diagnosis.
static void refuse(struct xco_control *core, uint32_t host, uint16_t owner,
                   const struct xco_place *place) {
    core->counters.places_refused++;
    core->counters.refused_place = number_of(place);
    core->counters.refused_claimant = host;
    core->counters.refused_owner = owner;
}

static void claim(struct xco_control *core, uint32_t host, const struct xco_place *place) {
    struct xco_claims *own = core->peers[host]->claims;
    const bool repeated = xco_place_log_find(&own->log, place) == host;
    const uint16_t owner = xco_place_log_find(&core->where, place);
    if (!xco_place_log_set(&own->log, place, (uint16_t)host)) {
        core->counters.places_beyond++;
    } else if (owner != XCO_NOWHERE && owner != host && core->peers[owner]->joined) {
        if (!repeated) {
            refuse(core, host, owner, place);
        }
    } else if (owner != host && !xco_place_log_set(&core->where, place, (uint16_t)host)) {
        core->counters.places_beyond++;
    }
}

// Gives the address to another host that claims it.
static void withdraw(struct xco_control *core, uint32_t host, const struct xco_place *place) {
    uint16_t next = XCO_NOWHERE;
    xco_place_log_set(&core->peers[host]->claims->log, place, XCO_NOWHERE);
    if (xco_place_log_find(&core->where, place) != host) {
        return;
    }
    for (uint32_t other = 0; other < core->network.hosts && next == XCO_NOWHERE; other++) {
        next = claims(core, other, place) ? (uint16_t)other : XCO_NOWHERE;
    }
    xco_place_log_set(&core->where, place, next);
}

struct sweep {
    struct xco_control *core;
    uint32_t host;
};

static void sweep(void *context, const struct xco_place *place) {
    const struct sweep *of = context;
    withdraw(of->core, of->host, place);
}

// From now on, what a host does not name is not there.
static void note_whole(struct xco_control *core, uint32_t host) {
    const struct xco_place all = xco_place_of_host((uint16_t)host);
    if (xco_place_log_find(&core->where, &all) != XCO_NOWHERE) {
        return;
    }
    if (xco_place_log_set(&core->where, &all, (uint16_t)host)) {
        core->whole++;
    } else {
        core->counters.places_beyond++;
    }
}

static void take(struct xco_control *core, uint32_t host, const struct xco_map *map) {
    struct xco_claims *own = core->peers[host]->claims;
    for (size_t i = 0; i < map->count; i++) {
        if (map->entries[i].host == XCO_NOWHERE) {
            withdraw(core, host, &map->entries[i].place);
        } else {
            claim(core, host, &map->entries[i].place);
        }
    }
    if (xco_place_reader_is_whole(&own->reader, map)) {
        xco_place_log_missing(&own->log, &own->reader.seen, sweep, &(struct sweep){core, host});
        note_whole(core, host);
    }
}

static void tell(struct xco_control *core, uint32_t host) {
    core->peers[host]->claims->due = true;
    xco_control_queue(core, host);
}

static void tell_all(struct xco_control *core) {
    for (uint32_t host = 0; host < core->network.hosts; host++) {
        if (core->peers[host] != NULL && core->peers[host]->claims != NULL) {
            tell(core, host);
        }
    }
}

enum xco_receive_result xco_claims_told(struct xco_control *core, uint64_t now_ns, uint32_t host,
                                        const struct xco_map *map) {
    struct xco_claims *own = find_claims(core, host);
    if (own == NULL || (own->heeded_ns != 0 && now_ns < own->heeded_ns + HEED_NS)) {
        return XCO_OBEYED; // the host will repeat it
    }
    const uint64_t have = own->reader.have, version = core->where.version;
    own->heeded_ns = now_ns;
    own->heard = map->heard;
    core->counters.received_places++;
    if (xco_place_reader_follow(&own->reader, map)) {
        take(core, host, map);
    }
    if (core->where.version != version) {
        tell_all(core);
    } else if (map->count > 0 || map->from != have || own->heard != version) {
        tell(core, host);
    }
    return XCO_OBEYED;
}

void xco_claims_care(struct xco_control *core, uint64_t now_ns, uint32_t host) {
    const struct xco_claims *own = core->peers[host]->claims;
    if (own != NULL && own->heard != core->where.version && now_ns >= own->told_ns + AGAIN_NS) {
        tell(core, host);
    }
}

void xco_claims_take(struct xco_control *core, uint64_t now_ns, uint32_t host,
                     struct xco_map *map) {
    struct xco_claims *own = core->peers[host]->claims;
    map->to = (uint16_t)host;
    map->heard = own->reader.have;
    xco_place_fill(&core->where, own->heard, map);
    own->due = false;
    own->told_ns = now_ns;
    core->counters.maps_sent++;
}
