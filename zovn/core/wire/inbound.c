/* Slots of frames from the wire, charged to their classes. */
#include "wire/inbound.h"

#include <stdlib.h>

uint32_t zovn_line_bytes(uint32_t length) {
    uint32_t bytes = length + ZOVN_LINE_OVERHEAD;
    return bytes < ZOVN_LINE_LEAST ? ZOVN_LINE_LEAST : bytes;
}

/* Memory that is not used is not there: the kernel gives it when it is touched. */
bool zovn_inbound_init(struct zovn_inbound *inbound, uint64_t buffer_bytes, uint32_t slot_bytes) {
    uint32_t count = (uint32_t)(buffer_bytes / ZOVN_LINE_LEAST * ZOVN_PFC_CLASSES);
    *inbound = (struct zovn_inbound){
        .count = count,
        .slot_bytes = slot_bytes,
        .buffer_bytes = buffer_bytes,
        .memory = calloc(count + 1, slot_bytes),
        .held = calloc(count, sizeof *inbound->held),
        .unused = calloc(count + 1, sizeof *inbound->unused),
        .order = calloc(count, sizeof *inbound->order),
    };
    if (!inbound->memory || !inbound->held || !inbound->unused || !inbound->order)
        return false;
    for (uint32_t i = 0; i <= count; i++)
        inbound->unused[i] = (uint16_t)(count - i);
    inbound->unused_count = count + 1;
    return true;
}

void zovn_inbound_free(struct zovn_inbound *inbound) {
    free(inbound->memory);
    free(inbound->held);
    free(inbound->unused);
    free(inbound->order);
}

static uint16_t top(const struct zovn_inbound *inbound) {
    return inbound->unused[inbound->unused_count - 1];
}

uint8_t *zovn_inbound_room(struct zovn_inbound *inbound) {
    return inbound->memory + (size_t)top(inbound) * inbound->slot_bytes;
}

/* The last slot, which is no head, stays at the bottom of the stack. */
bool zovn_inbound_hold(struct zovn_inbound *inbound, const struct zovn_held *frame) {
    uint64_t *bytes = &inbound->held_bytes[frame->buffer];
    if (*bytes + frame->charged > inbound->buffer_bytes || inbound->unused_count == 1)
        return false;
    uint16_t head = top(inbound);
    inbound->unused_count--;
    inbound->held[head] = *frame;
    inbound->order[inbound->posted++ % inbound->count] = head;
    *bytes += frame->charged;
    return true;
}

uint32_t zovn_inbound_peek(struct zovn_inbound *inbound, uint16_t *heads, uint32_t most) {
    uint32_t count = 0;
    while (count < most && inbound->peeked != inbound->posted)
        heads[count++] = inbound->order[inbound->peeked++ % inbound->count];
    return count;
}

void zovn_inbound_release(struct zovn_inbound *inbound, uint16_t head) {
    inbound->held_bytes[inbound->held[head].buffer] -= inbound->held[head].charged;
    inbound->unused[inbound->unused_count++] = head;
}
