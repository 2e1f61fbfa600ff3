/* A guest that is attached to the switch: its rings, and what they need while they are used.
 *
 * Rings come in pairs: in a pair the guest receives from the first one and transmits to the second. */
#ifndef ZOVN_VHOST_GUEST_H
#define ZOVN_VHOST_GUEST_H

#include "forward/line.h"
#include "vhost/dirty.h"
#include "vhost/rings.h"

struct zovn_guest {
    struct zovn_port *port; /* NULL: not attached; else the forwarding thread's */
    struct zovn_memory memory; /* `lost` holds until another front end connects */
    struct zovn_dirty dirty;
    struct zovn_recorded recorded; /* by the front end; none: 0 rings */
    uint32_t count;            /* of pairs */
    struct zovn_guest_rings {
        uint32_t number; /* of the pair, as the front end counts */
        struct zovn_vhost_files files[ZOVN_RINGS];
        struct zovn_record record;          /* if the front end keeps none */
        uint16_t next_avail[ZOVN_RINGS], next_used[ZOVN_RINGS]; /* when detached */
    } pairs[ZOVN_MOST_PAIRS];
};

/* Attach the pairs of which the bits are set, the first one among them, to a line. Problems are
 * logged. */
void zovn_guest_attach(struct zovn_guest *guest, struct zovn_line *line, int device,
                       uint32_t pairs);

/* Add pairs to those that are attached, which go on. Problems are logged. */
void zovn_guest_extend(struct zovn_guest *guest, struct zovn_line *line, int device,
                       uint32_t pairs);

/* Return when the rings are no longer used. All descriptors are given back then, so that the next index
 * says all about a ring. */
void zovn_guest_detach(struct zovn_guest *guest, struct zovn_line *line, int device);

/* A ring's files were replaced: this must not cost a frame. */
void zovn_guest_refresh(struct zovn_guest *guest, struct zovn_line *line, int device,
                        uint32_t ring);

/* Use the log that there is now; without one, use none. */
void zovn_guest_relog(struct zovn_guest *guest, struct zovn_line *line, int device);

/* Return the attached pairs as bits. */
uint32_t zovn_guest_pairs(const struct zovn_guest *guest);

#endif
