/* What is taken is marked before it is read, and unmarked after the driver has it back. */
#include "rings/inflight.h"

#include <stdlib.h>

enum { FREE = 0, TAKEN = 1, GIVING = 2 };

/* In the order of the program, for a reader that finds the record after this process was killed. */
#define STORE(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELEASE)

void zovn_inflight_take(struct zovn_split_ring *ring, uint16_t head) {
    struct zovn_inflight_entry *entry = &ring->inflight->entries[head];
    STORE(entry->counter, ring->taken++);
    STORE(entry->state, TAKEN);
}

/* The driver can write there, too: what it writes harms its own record alone. */
static struct zovn_inflight_entry *entry_of(const struct zovn_split_ring *ring, uint16_t place) {
    uint32_t head = ZOVN_READ(ring->used->ring[place & (ring->size - 1)].id);
    return &ring->inflight->entries[head & (ring->size - 1)];
}

void zovn_inflight_giving(const struct zovn_split_ring *ring) {
    struct zovn_inflight *inflight = ring->inflight;
    for (uint16_t place = ring->published; place != ring->next_used; place++) {
        struct zovn_inflight_entry *entry = entry_of(ring, place);
        STORE(entry->place, place);
        STORE(entry->state, GIVING);
        STORE(inflight->last, (uint16_t)(entry - inflight->entries));
    }
}

void zovn_inflight_given(const struct zovn_split_ring *ring, uint16_t published) {
    for (uint16_t place = published; place != ring->next_used; place++)
        STORE(entry_of(ring, place)->state, FREE);
    STORE(ring->inflight->used_index, ring->next_used);
}

bool zovn_inflight_stands_at(const struct zovn_inflight *inflight, uint16_t used) {
    const struct zovn_inflight_entry *last = &inflight->entries[inflight->last];
    return used == inflight->used_index || used == (uint16_t)(last->place + 1);
}

static bool is_taken(struct zovn_inflight_entry *entry, uint16_t used) {
    if (entry->state == GIVING)
        entry->state = (int16_t)(uint16_t)(used - entry->place) > 0 ? FREE : TAKEN;
    return entry->state == TAKEN;
}

static int older(const void *one, const void *other, void *entries) {
    const struct zovn_inflight_entry *all = entries;
    uint64_t a = all[*(const uint16_t *)one].counter, b = all[*(const uint16_t *)other].counter;
    return (a > b) - (a < b);
}

static uint32_t find(struct zovn_inflight *inflight, uint32_t size, uint16_t used,
                     uint16_t *heads) {
    uint32_t count = 0;
    for (uint32_t head = 0; head < size; head++)
        if (is_taken(&inflight->entries[head], used))
            heads[count++] = (uint16_t)head;
    return count;
}

uint32_t zovn_inflight_resume(struct zovn_split_ring *ring, uint16_t *heads) {
    struct zovn_inflight *inflight = ring->inflight;
    uint16_t used = ZOVN_READ(ring->used->index);
    uint32_t count = find(inflight, ring->size, used, heads);
    if (!count)
        return 0;
    qsort_r(heads, count, sizeof *heads, older, inflight->entries);
    ring->taken = inflight->entries[heads[count - 1]].counter + 1;
    STORE(inflight->used_index, used);
    ring->next_used = ring->published = used;
    ring->next_avail = (uint16_t)(used + count);
    return count;
}
