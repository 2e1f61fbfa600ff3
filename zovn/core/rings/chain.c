/* Walks chains of descriptors: direct ones, and those in an indirect table (2.7.5). */
#include "rings/chain.h"

#include <stddef.h>

struct walk {
    const struct zovn_split_ring *ring;
    const struct zovn_descriptor *table;
    uint32_t entries; /* of the table */
    uint32_t steps;   /* in this table: more than it has entries are a loop */
    uint32_t count;   /* of segments */
    bool indirect;
};

/* A copy that the driver cannot change. */
static struct zovn_descriptor read_once(const struct zovn_descriptor *from) {
    return (struct zovn_descriptor){
        .address = ZOVN_READ(from->address),
        .length = ZOVN_READ(from->length),
        .flags = ZOVN_READ(from->flags),
        .next = ZOVN_READ(from->next),
    };
}

static bool enter_table(struct walk *walk, const struct zovn_descriptor *at) {
    bool allowed = walk->ring->indirect && !walk->indirect && !(at->flags & ZOVN_NEXT);
    if (!allowed || at->length == 0 || at->length % sizeof(struct zovn_descriptor))
        return false;
    uint8_t *table = zovn_memory_at(walk->ring->memory, at->address, at->length);
    if (!table || (uintptr_t)table % _Alignof(struct zovn_descriptor))
        return false;
    walk->table = (const struct zovn_descriptor *)(void *)table;
    walk->entries = at->length / (uint32_t)sizeof(struct zovn_descriptor);
    walk->steps = 0;
    walk->indirect = true;
    return true;
}

static bool segment_of(const struct walk *walk, const struct zovn_descriptor *at, bool writable,
                       struct zovn_segment *to) {
    if (!(at->flags & ZOVN_WRITE) == writable)
        return false;
    *to = (struct zovn_segment){zovn_memory_at(walk->ring->memory, at->address, at->length),
                                at->length};
    return to->bytes;
}

int32_t zovn_chain(const struct zovn_split_ring *ring, uint16_t head, bool writable,
                   struct zovn_segment *to, uint32_t most) {
    struct walk walk = {.ring = ring, .table = ring->descriptors, .entries = ring->size};
    for (uint16_t next = head;;) {
        if (next >= walk.entries || walk.steps++ == walk.entries)
            return -1;
        struct zovn_descriptor at = read_once(&walk.table[next]);
        if (at.flags & ZOVN_INDIRECT) {
            if (!enter_table(&walk, &at))
                return -1;
            next = 0;
            continue;
        }
        if (walk.count == most || !segment_of(&walk, &at, writable, &to[walk.count]))
            return -1;
        walk.count++;
        if (!(at.flags & ZOVN_NEXT))
            return (int32_t)walk.count;
        next = at.next;
    }
}
