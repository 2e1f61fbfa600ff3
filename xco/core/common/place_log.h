// Where addresses are, as a log of the last change of each: who has read up to a version is told what
// came after it.
//
// Both directions use it: a host tells what is behind it, the controller tells every host who has
// what. A reader that lost messages, or is new, reads on from where it stands. Values are hosts;
// XCO_NOWHERE: the address is at none (any more). Pure.
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
    uint64_t version; // of its last change; 0: the place is free
    uint32_t older, newer; // neighbours in the order of versions
    uint32_t next; // of the same bucket
};

struct xco_place_log {
    struct xco_place_entry *entries; // by number; 0 is nobody
    uint32_t *buckets;
    uint32_t room; // a power of two
    uint32_t oldest, newest, unused;
    uint64_t version; // of the newest change
    uint32_t known;   // addresses that are at a host
    uint64_t floor;   // who has read less must begin anew: what is nowhere was forgotten since
};

// Makes an empty log for so many addresses, a power of two; false: no memory.
bool xco_place_log_init(struct xco_place_log *log, uint32_t room);
void xco_place_log_free(struct xco_place_log *log);

// Returns the host of an address, XCO_NOWHERE if it is at none.
uint16_t xco_place_log_find(const struct xco_place_log *log, const struct xco_place *place);

// Notes where an address is; false: there is no room, even without what is nowhere.
bool xco_place_log_set(struct xco_place_log *log, const struct xco_place *place, uint16_t host);

// Forgets everything; room stays.
void xco_place_log_clear(struct xco_place_log *log);

// Gives each address that is at a host here and at none in `seen`; `take` may change this log.
typedef void (*xco_place_taker)(void *context, const struct xco_place *place);
void xco_place_log_missing(const struct xco_place_log *log, const struct xco_place_log *seen,
                           xco_place_taker take, void *context);

// Writes what changed after a version, oldest first, at most `count`; returns how many, and in
// `until` the version that the reader then has. Begin anew (version 0) where it is below `floor`.
size_t xco_place_log_since(const struct xco_place_log *log, uint64_t version,
                           struct xco_located *changes, size_t count, uint64_t *until);

#endif
