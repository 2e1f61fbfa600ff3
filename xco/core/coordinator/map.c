// Map of addresses to hosts: reports local ones to the controller, and obeys its map of the others;
// part of the coordinator's shell.
#include "coordinator/map.h"

#include <errno.h>
#include <string.h>

#include "coordinator/located.h"
#include "coordinator/marks.h"
#include "common/log.h"

#define HERE_ROOM 1024u
#define THERE_ROOM 65536u
#define AGAIN_NS 20000000
#define ANEW_NS 10000000000 // everything is repeated at this interval: makes up for losses
#define GRACE_NS 2000000000 // by then a new controller has heard every host that runs

int xco_map_open(struct xco_coordinator *c) {
    struct xco_map_state *map = &c->map;
    map->sweep_ns = XCO_NEVER;
    bool good = xco_place_log_init(&map->here, HERE_ROOM) &&
                xco_place_log_init(&map->there, THERE_ROOM) &&
                xco_place_reader_init(&map->reader, THERE_ROOM);
    return good ? xco_located_open(c) : -ENOMEM;
}

void xco_map_joined(struct xco_coordinator *c, int64_t now_ns) {
    c->map.told = 0;
    c->map.reader.have = 0;
    c->map.joined_ns = now_ns;
    c->map.due = true;
}

// Whether the configuration locates an address: it takes precedence.
static bool is_listed(const struct xco_coordinator *c, const struct xco_place *place) {
    struct in6_addr address;
    memcpy(&address, place->address, sizeof address);
    return place->kind == XCO_PLACE_IP && xco_config_host(&c->config, &address) != XCO_CONTROLLER;
}

static void displace(void *context, const struct xco_place *place) {
    struct xco_coordinator *c = context;
    xco_place_log_set(&c->map.there, place, XCO_NOWHERE);
    xco_located_note(c, place);
    (void)xco_classifier_displace(&c->places.classifier, place); // -ENOENT: it was not in the map
    xco_marks_displace(c, place);
}

static void apply(struct xco_coordinator *c, const struct xco_located *entry) {
    if (entry->place.kind == XCO_PLACE_HOST) {
        return; // the reader notes it
    }
    if (is_listed(c, &entry->place)) {
        c->counts.places_overruled++;
        return;
    }
    if (entry->host == XCO_NOWHERE || entry->host == c->core.config.host) {
        displace(c, &entry->place); // addresses behind us leave by no gate
        return;
    }
    if (!xco_place_log_set(&c->map.there, &entry->place, entry->host) ||
        xco_classifier_place(&c->places.classifier, &entry->place, entry->host) != 0) {
        c->counts.places_beyond++;
    } else {
        xco_marks_place(c, &entry->place, entry->host);
    }
    xco_located_note(c, &entry->place);
}

void xco_map_recall(struct xco_coordinator *c, const struct xco_located *entry) {
    apply(c, entry);
}

// Takes changes, and plans to forget what the log does not name once it has been read to its end.
static void read_on(struct xco_coordinator *c, int64_t now_ns, const struct xco_map *message) {
    struct xco_map_state *map = &c->map;
    for (size_t i = 0; i < message->count; i++) {
        apply(c, &message->entries[i]);
    }
    (void)xco_place_reader_is_whole(&map->reader, message);
    if (xco_place_reader_may_sweep(&map->reader)) {
        const int64_t heard_ns = map->joined_ns + GRACE_NS;
        map->sweep_ns = heard_ns > now_ns ? heard_ns : now_ns;
    }
}

void xco_map_take(struct xco_coordinator *c, int64_t now_ns, const struct xco_map *message) {
    struct xco_map_state *map = &c->map;
    if (message->to != c->core.config.host || !c->places.stand) {
        return;
    }
    const uint64_t have = map->reader.have;
    map->told = message->heard;
    c->counts.maps++;
    if (xco_place_reader_follow(&map->reader, message)) {
        read_on(c, now_ns, message);
    }
    map->due = map->due || message->count > 0 || message->from != have;
}

static bool is_due(const struct xco_map_state *map, int64_t now_ns) {
    return map->due || (map->here.version != map->told && now_ns - map->sent_ns >= AGAIN_NS);
}

bool xco_map_work(struct xco_coordinator *c, int64_t now_ns) {
    struct xco_map_state *map = &c->map;
    if (!c->places.stand || !c->core.joined) {
        return false;
    }
    if (now_ns - map->anew_ns >= ANEW_NS) {
        map->anew_ns = now_ns;
        map->told = 0;
        map->due = true;
    }
    if (!is_due(map, now_ns)) {
        return false;
    }
    map->due = false;
    map->sent_ns = now_ns;
    return true;
}

void xco_map_sweep(struct xco_coordinator *c) {
    c->map.sweep_ns = XCO_NEVER;
    if (xco_place_reader_may_sweep(&c->map.reader)) { // otherwise the next message plans it again
        xco_place_reader_sweep(&c->map.reader, &c->map.there, displace, c);
        xco_located_complete(c);
    }
}

void xco_map_here(struct xco_coordinator *c, const struct xco_place *place, bool here) {
    const uint64_t version = c->map.here.version;
    if (!xco_place_log_set(&c->map.here, place, here ? c->core.config.host : XCO_NOWHERE)) {
        if (c->counts.places_beyond++ == 0) {
            xco_say("%s: more than %u addresses behind the bridge: the others are not told of",
                    c->config.interface, HERE_ROOM);
        }
    }
    c->map.due = c->map.due || c->map.here.version != version;
}
