/* The indices of a split virtqueue, and its notifications. */
#include "rings/split_ring.h"

#include "rings/prefetch.h"

enum { AHEAD = 16 }; /* used elements: two cache lines */

bool zovn_split_ring_valid(const struct zovn_split_ring *ring) {
    uintptr_t descriptors = (uintptr_t)ring->descriptors, avail = (uintptr_t)ring->avail;
    return ring->size && ring->size <= 32768 && !(ring->size & (ring->size - 1)) && descriptors &&
           avail && ring->used && ring->memory && descriptors % 16 == 0 && avail % 2 == 0 &&
           (uintptr_t)ring->used % 4 == 0;
}

/* What was read after the memory was lost may look like any other fault. */
enum zovn_fault zovn_split_ring_fault(const struct zovn_split_ring *ring) {
    return ZOVN_READ(ring->memory->lost) ? ZOVN_MEMORY_GONE : ring->fault;
}

uint32_t zovn_split_ring_available(struct zovn_split_ring *ring) {
    if (ring->fault)
        return 0;
    uint16_t index = __atomic_load_n(&ring->avail->index, __ATOMIC_ACQUIRE);
    uint16_t count = (uint16_t)(index - ring->next_avail);
    if (count > ring->size) {
        ring->fault = ZOVN_AVAIL_JUMP;
        return 0;
    }
    ring->known = count;
    return count;
}

int32_t zovn_split_ring_head(struct zovn_split_ring *ring, uint32_t place) {
    uint32_t entry = (ring->next_avail + place) & (ring->size - 1);
    uint16_t head = ZOVN_READ(ring->avail->ring[entry]);
    if (head < ring->size)
        return head;
    ring->fault = ZOVN_HEAD_RANGE;
    return -1;
}

void zovn_split_ring_complete(struct zovn_split_ring *ring, uint16_t head, uint32_t written) {
    uint32_t mask = ring->size - 1, at = ring->next_used++;
    struct zovn_used_element *element = &ring->used->ring[at & mask];
    zovn_prefetch_to_write(&ring->used->ring[(at + AHEAD) & mask]);
    ZOVN_WRITE_TO(element->id, (uint32_t)head);
    ZOVN_WRITE_TO(element->length, written);
    zovn_memory_written(ring->memory, element, sizeof *element);
}

static bool wants_notification(const struct zovn_split_ring *ring, uint16_t before) {
    if (!ring->event_index)
        return !(ZOVN_READ(ring->avail->flags) & ZOVN_NO_INTERRUPT);
    uint16_t event = ZOVN_READ(ring->avail->ring[ring->size]);
    return (uint16_t)(ring->next_used - event - 1) < (uint16_t)(ring->next_used - before);
}

bool zovn_split_ring_publish(struct zovn_split_ring *ring) {
    uint16_t before = ring->published;
    if (before == ring->next_used)
        return false;
    __atomic_store_n(&ring->used->index, ring->next_used, __ATOMIC_RELEASE);
    ring->published = ring->next_used;
    zovn_memory_written(ring->memory, ring->used, sizeof *ring->used);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* the driver asks, then looks: so do we, crosswise */
    return wants_notification(ring, before);
}

void zovn_split_ring_ask(struct zovn_split_ring *ring, bool notify) {
    uint16_t *event = (uint16_t *)(void *)&ring->used->ring[ring->size];
    uint16_t index = __atomic_load_n(&ring->avail->index, __ATOMIC_ACQUIRE);
    if (ring->event_index)
        ZOVN_WRITE_TO(*event, (uint16_t)(notify ? index : index - 1));
    else
        ZOVN_WRITE_TO(ring->used->flags, (uint16_t)(notify ? 0 : ZOVN_NO_NOTIFY));
    zovn_memory_written(ring->memory, ring->event_index ? (void *)event : ring->used,
                        sizeof *event);
    __atomic_thread_fence(
        __ATOMIC_SEQ_CST); /* what came before this is seen by those who look now */
}
