/* The log of pages that were written, which a front end reads while it migrates its guest. */
#ifndef ZOVN_VHOST_DIRTY_H
#define ZOVN_VHOST_DIRTY_H

#include "rings/memory.h"

struct zovn_dirty {
    bool known; /* the front end's last log was accepted */
    bool lost;  /* it was truncated: that is the front end's loss */
};

struct zovn_dirty_log {
    uint8_t *bits; /* NULL: nothing is to be logged */
    uint64_t bytes;
};

/* Find the log that a device is to write now. */
struct zovn_dirty_log zovn_dirty_find(const struct zovn_dirty *dirty, int device);

/* Write this log from now on, and no other one. */
void zovn_dirty_use(struct zovn_dirty *dirty, struct zovn_memory *memory,
                    const struct zovn_dirty_log *log);

#endif
