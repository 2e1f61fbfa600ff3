// Where addresses are, as a log of the last change of each: a reader of one version gets the later
// changes.
//
// Both directions use it: a host reports the addresses behind it, and the controller tells every
// host the addresses of all. A reader that lost messages, or is new, continues from its version.
// Values are hosts; XCO_NOWHERE: the address is at no host (any longer). Pure.
#ifndef XCO_COMMON_PLACE_LOG_H
#define XCO_COMMON_PLACE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/place.h"

#define XCO_NOWHERE 0xffffu

// An address and its host.
struct xco_located {
    struct xco_place place;
    uint16_t host;
};

struct xco_place_entry {
    struct xco_located located;
    uint64_t version; // of its last change; 0: the slot is free
    uint32_t older, newer; // neighbours in the order of versions
    uint32_t next; // next in the same bucket
};

struct xco_place_log {
    struct xco_place_entry *entries; // by number; 0: no entry
    uint32_t *buckets;
    uint32_t room; // a power of two
    uint32_t oldest, newest, unused;
    uint64_t version; // of the newest change
    uint32_t known;   // number of addresses at a host
    uint64_t floor; // readers below it must start over: unlocated addresses were forgotten since
};

// Returns the entry that says that a host has named all of its addresses.
static inline struct xco_place xco_place_of_host(uint16_t host) {
    return (struct xco_place){.address = {(uint8_t)host, (uint8_t)(host >> 8)},
                              .vlan = XCO_ANY_VLAN,
                              .kind = XCO_PLACE_HOST};
}

// Makes an empty log for so many addresses, a power of two; false: no memory.
bool xco_place_log_init(struct xco_place_log *log, uint32_t room);
void xco_place_log_free(struct xco_place_log *log);

// Returns the host of an address, XCO_NOWHERE if it is at none.
uint16_t xco_place_log_find(const struct xco_place_log *log, const struct xco_place *place);

// Returns the number of an address's entry, from 1 to `room`, as long as the log has it; 0: it is
// not in the log.
uint32_t xco_place_log_number(const struct xco_place_log *log, const struct xco_place *place);

// Notes where an address is; false: no room, even after forgetting addresses at no host.
bool xco_place_log_set(struct xco_place_log *log, const struct xco_place *place, uint16_t host);

// Forgets everything; keeps the room.
void xco_place_log_clear(struct xco_place_log *log);

// Passes to `take` each address that is at a host here and at none in `seen`; it may change this
// log.
typedef void (*xco_place_taker)(void *context, const struct xco_place *place);
void xco_place_log_missing(const struct xco_place_log *log, const struct xco_place_log *seen,
                           xco_place_taker take, void *context);

// Writes the changes after a version, oldest first, at most `count`. Returns their number, and in
// `until` the version that the reader then has. Start over (version 0) where it is below `floor`.
size_t xco_place_log_since(const struct xco_place_log *log, uint64_t version,
                           struct xco_located *changes, size_t count, uint64_t *until);

#endif
