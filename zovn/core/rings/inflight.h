/* A record of the chains that the device has taken and not given back, which outlives the device.
 *
 * Its layout is that of the vhost-user protocol for split virtqueues ("Inflight I/O tracking"). A
 * device that is killed and started again reads on behind what its record holds, and takes that
 * first. Indices of the used ring say which of the chains it was giving back the driver got. */
#ifndef ZOVN_RINGS_INFLIGHT_H
#define ZOVN_RINGS_INFLIGHT_H

#include "rings/split_ring.h"

struct zovn_inflight_entry {
    uint8_t state;
    uint8_t padding[5];
    uint16_t place;   /* in the used ring, while it is given back */
    uint64_t counter; /* rises with each chain that is taken */
};

struct zovn_inflight {
    uint64_t features;
    uint16_t version;
    uint16_t size;
    uint16_t last;       /* a chain of the batch that was given back last */
    uint16_t used_index; /* after that batch */
    struct zovn_inflight_entry entries[];
};

_Static_assert(sizeof(struct zovn_inflight_entry) == 16, "vhost-user: DescStateSplit");
_Static_assert(sizeof(struct zovn_inflight) == 16, "vhost-user: QueueRegionSplit");

/* Note that a chain is taken. */
void zovn_inflight_take(struct zovn_split_ring *ring, uint16_t head);

/* Before and after the driver sees the used entries from `published` to `next_used`. */
void zovn_inflight_giving(const struct zovn_split_ring *ring);
void zovn_inflight_given(const struct zovn_split_ring *ring, uint16_t published);

/* Return whether the used ring stands at this index if only this device gave chains back: before or after
 * the batch that was given back last. */
bool zovn_inflight_stands_at(const struct zovn_inflight *inflight, uint16_t used);

/* Go on where a device stopped: set the ring's indices, and fill in the chains that are still taken,
 * oldest first; `heads` has room for one of each entry. Return their number. */
uint32_t zovn_inflight_resume(struct zovn_split_ring *ring, uint16_t *heads);

#endif
