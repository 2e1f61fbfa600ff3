// Follows another's log of addresses by its messages, and fills messages for readers of our log.
//
// Messages may be lost: each names the version that the reader must have. Pure.
#ifndef XCO_COMMON_PLACE_READER_H
#define XCO_COMMON_PLACE_READER_H

#include "common/wire.h"

// How far another's log has been read.
struct xco_place_reader {
    uint64_t have, last;        // of its versions: what was read, and the newest
    bool again;                 // it is being read from its beginning
    bool unswept;               // it has named all addresses, or all of a host, since a sweep
    struct xco_place_log seen; // all locations read since its last beginning
};

// `room` as for a log; false: no memory.
bool xco_place_reader_init(struct xco_place_reader *reader, uint32_t room);
void xco_place_reader_free(struct xco_place_reader *reader);

// Notes a message; returns whether to take its entries: they follow what was read, or start over.
bool xco_place_reader_follow(struct xco_place_reader *reader, const struct xco_map *map);

// Whether the log has been read from beginning to end; true once. Addresses not in `seen` are gone.
bool xco_place_reader_is_whole(struct xco_place_reader *reader, const struct xco_map *map);

// Whether addresses may be gone now: it has been read to its end. A sweep passes to `take` each
// address of `log` that is not in `seen`, though all addresses of its host are. `take` may change
// `log`. What is at other hosts may still be there: the writer has not heard of it yet.
bool xco_place_reader_may_sweep(const struct xco_place_reader *reader);
void xco_place_reader_sweep(struct xco_place_reader *reader, const struct xco_place_log *log,
                            xco_place_taker take, void *context);

// Fills a message with the changes that a reader at version `heard` lacks.
void xco_place_fill(const struct xco_place_log *log, uint64_t heard, struct xco_map *map);

#endif
