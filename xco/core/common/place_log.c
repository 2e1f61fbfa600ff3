// Where addresses are, as a log of the last change of each.
#include "common/place_log.h"

#include <stdlib.h>
#include <string.h>

static uint32_t bucket_of(const struct xco_place_log *log, const struct xco_place *place) {
    uint32_t words[sizeof *place / sizeof(uint32_t)], value = 2166136261u;
    memcpy(words, place, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        value = (value ^ words[i]) * 16777619u; // FNV-1a
    }
    return (value ^ value >> 15) & (log->room - 1);
}

bool xco_place_log_init(struct xco_place_log *log, uint32_t room) {
    *log = (struct xco_place_log){.room = room, .unused = 1};
    log->entries = calloc(room + 1, sizeof *log->entries);
    log->buckets = calloc(room, sizeof *log->buckets);
    for (uint32_t i = 1; log->entries != NULL && i < room; i++) {
        log->entries[i].next = i + 1;
    }
    if (log->entries != NULL && log->buckets != NULL) {
        return true;
    }
    xco_place_log_free(log);
    return false;
}

void xco_place_log_free(struct xco_place_log *log) {
    free(log->entries);
    free(log->buckets);
    *log = (struct xco_place_log){0};
}

uint32_t xco_place_log_number(const struct xco_place_log *log, const struct xco_place *place) {
    uint32_t number = log->buckets[bucket_of(log, place)];
    while (number != 0 && memcmp(&log->entries[number].located.place, place, sizeof *place) != 0) {
        number = log->entries[number].next;
    }
    return number;
}

uint16_t xco_place_log_find(const struct xco_place_log *log, const struct xco_place *place) {
    const struct xco_place_entry *entry = &log->entries[xco_place_log_number(log, place)];
    return entry->version == 0 ? XCO_NOWHERE : entry->located.host;
}

// Removes an entry from the order of versions.
static void take_out(struct xco_place_log *log, uint32_t number) {
    struct xco_place_entry *entry = &log->entries[number];
    *(entry->older == 0 ? &log->oldest : &log->entries[entry->older].newer) = entry->newer;
    *(entry->newer == 0 ? &log->newest : &log->entries[entry->newer].older) = entry->older;
}

// Puts an entry at the end of the order, as the newest change.
static void put_last(struct xco_place_log *log, uint32_t number) {
    struct xco_place_entry *entry = &log->entries[number];
    entry->version = ++log->version;
    entry->older = log->newest;
    entry->newer = 0;
    *(log->newest == 0 ? &log->oldest : &log->entries[log->newest].newer) = number;
    log->newest = number;
}

static void unlink_bucket(struct xco_place_log *log, uint32_t number) {
    uint32_t *at = &log->buckets[bucket_of(log, &log->entries[number].located.place)];
    while (*at != number) {
        at = &log->entries[*at].next;
    }
    *at = log->entries[number].next;
}

static void drop(struct xco_place_log *log, uint32_t number) {
    log->known -= log->entries[number].located.host != XCO_NOWHERE;
    take_out(log, number);
    unlink_bucket(log, number);
    log->entries[number] = (struct xco_place_entry){.next = log->unused};
    log->unused = number;
}

void xco_place_log_clear(struct xco_place_log *log) {
    while (log->oldest != 0) {
        drop(log, log->oldest);
    }
}

// Forgets the oldest address that is at no host; false if there is none.
static bool forget(struct xco_place_log *log) {
    uint32_t number = log->oldest;
    while (number != 0 && log->entries[number].located.host != XCO_NOWHERE) {
        number = log->entries[number].newer;
    }
    if (number == 0) {
        return false;
    }
    log->floor = log->entries[number].version;
    drop(log, number);
    return true;
}

static uint32_t make(struct xco_place_log *log, const struct xco_place *place) {
    if (log->unused == 0 && !forget(log)) {
        return 0;
    }
    uint32_t number = log->unused, *bucket = &log->buckets[bucket_of(log, place)];
    log->unused = log->entries[number].next;
    log->entries[number].located.place = *place;
    log->entries[number].next = *bucket;
    *bucket = number;
    return number;
}

bool xco_place_log_set(struct xco_place_log *log, const struct xco_place *place, uint16_t host) {
    if (xco_place_log_find(log, place) == host) {
        return true;
    }
    uint32_t number = xco_place_log_number(log, place);
    if (number != 0) {
        take_out(log, number);
    } else if ((number = make(log, place)) == 0) {
        return false;
    } else {
        log->entries[number].located.host = XCO_NOWHERE;
    }
    log->known -= log->entries[number].located.host != XCO_NOWHERE;
    log->known += host != XCO_NOWHERE;
    log->entries[number].located.host = host;
    put_last(log, number);
    return true;
}

// Returns the first entry after a version; searches from the newest, near most readers.
static uint32_t first_after(const struct xco_place_log *log, uint64_t version) {
    uint32_t number = version == 0 ? log->oldest : log->newest, found = 0;
    if (version == 0) {
        return number;
    }
    while (number != 0 && log->entries[number].version > version) {
        found = number;
        number = log->entries[number].older;
    }
    return found;
}

size_t xco_place_log_since(const struct xco_place_log *log, uint64_t version,
                           struct xco_located *changes, size_t count, uint64_t *until) {
    size_t written = 0;
    uint32_t number = first_after(log, version);
    *until = number == 0 ? log->version : version;
    for (; number != 0 && written < count; number = log->entries[number].newer) {
        changes[written++] = log->entries[number].located;
        *until = log->entries[number].version;
    }
    return written;
}

void xco_place_log_missing(const struct xco_place_log *log, const struct xco_place_log *seen,
                           xco_place_taker take, void *context) {
    for (uint32_t number = 1; number <= log->room; number++) {
        const struct xco_place_entry *entry = &log->entries[number];
        if (entry->version != 0 && entry->located.host != XCO_NOWHERE &&
            xco_place_log_find(seen, &entry->located.place) == XCO_NOWHERE) {
            const struct xco_place place = entry->located.place;
            take(context, &place);
        }
    }
}
