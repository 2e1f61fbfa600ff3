// A log of addresses and its reader, without the messages between them.
#include <stdlib.h>

#include "common/place_reader.h"

#define ROOM 64u

struct pair {
    struct xco_place_log theirs, ours;
    struct xco_place_reader reader;
};

static struct xco_place place_of(unsigned number) {
    return (struct xco_place){.address = {2, (uint8_t)number}, .kind = XCO_PLACE_MAC};
}

struct pair *shim_pair(void) {
    struct pair *pair = calloc(1, sizeof *pair);
    bool good = xco_place_log_init(&pair->theirs, ROOM) && xco_place_log_init(&pair->ours, ROOM) &&
                xco_place_reader_init(&pair->reader, ROOM);
    return good ? pair : NULL;
}

void shim_end(struct pair *pair) {
    xco_place_log_free(&pair->theirs);
    xco_place_log_free(&pair->ours);
    xco_place_reader_free(&pair->reader);
    free(pair);
}

void shim_move(struct pair *pair, unsigned number, unsigned host) {
    const struct xco_place place = place_of(number);
    xco_place_log_set(&pair->theirs, &place, (uint16_t)host);
}

// The writer has heard of all addresses of a host.
void shim_hear(struct pair *pair, unsigned host) {
    const struct xco_place all = xco_place_of_host((uint16_t)host);
    xco_place_log_set(&pair->theirs, &all, (uint16_t)host);
}

// Another writer begins, which knows nothing yet; the reader begins again, too.
void shim_restart(struct pair *pair) {
    xco_place_log_free(&pair->theirs);
    xco_place_log_init(&pair->theirs, ROOM);
    pair->reader.have = 0;
}

// Passes one message; returns whether the whole log has been read now, for the first time.
bool shim_tell(struct pair *pair) {
    struct xco_map map = {0};
    xco_place_fill(&pair->theirs, pair->reader.have, &map);
    if (!xco_place_reader_follow(&pair->reader, &map)) {
        return false;
    }
    for (size_t i = 0; i < map.count; i++) {
        if (map.entries[i].place.kind == XCO_PLACE_HOST) {
            continue;
        }
        xco_place_log_set(&pair->ours, &map.entries[i].place, map.entries[i].host);
    }
    return xco_place_reader_is_whole(&pair->reader, &map);
}

static void displace(void *context, const struct xco_place *place) {
    struct pair *pair = context;
    xco_place_log_set(&pair->ours, place, XCO_NOWHERE);
}

// Forgets what the log no longer names, if it has been read to its end; returns whether it did.
bool shim_sweep(struct pair *pair) {
    if (!xco_place_reader_may_sweep(&pair->reader)) {
        return false;
    }
    xco_place_reader_sweep(&pair->reader, &pair->ours, displace, pair);
    return true;
}

// Returns where the reader takes an address to be.
unsigned shim_where(const struct pair *pair, unsigned number) {
    const struct xco_place place = place_of(number);
    return xco_place_log_find(&pair->ours, &place);
}

// Returns whether the reader knows where each address is.
bool shim_agrees(const struct pair *pair, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        const struct xco_place place = place_of(i);
        if (xco_place_log_find(&pair->theirs, &place) != xco_place_log_find(&pair->ours, &place)) {
            return false;
        }
    }
    return true;
}
