/* Rings of frames to the wire, and the turn among them. */
#include "wire/outbound.h"

#include <stdlib.h>

#include "wire/inbound.h"

bool zovn_outbound_init(struct zovn_outbound *outbound, uint64_t rate_bps, uint32_t slot_bytes) {
    *outbound = (struct zovn_outbound){
        .pace = {.rate_bps = rate_bps},
        .slot_bytes = slot_bytes,
        .memory = calloc(ZOVN_PFC_CLASSES * ZOVN_OUT_RING, slot_bytes),
    };
    return outbound->memory;
}

void zovn_outbound_free(struct zovn_outbound *outbound) {
    free(outbound->memory);
}

static bool is_open(const struct zovn_outbound *outbound, uint32_t class) {
    return !(outbound->paused >> class & 1);
}

/* What waits for a paused class does not wait for the line. */
bool zovn_outbound_room(const struct zovn_outbound *outbound) {
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < ZOVN_PFC_CLASSES; i++)
        waiting += is_open(outbound, i) ? outbound->rings[i].count : 0;
    return waiting < ZOVN_LINE_FRAMES;
}

bool zovn_outbound_class_room(const struct zovn_outbound *outbound, uint32_t class) {
    return is_open(outbound, class);
}

static uint32_t place_of(uint32_t class, uint32_t number) {
    return class * ZOVN_OUT_RING + number % ZOVN_OUT_RING;
}

uint8_t *zovn_outbound_slot(struct zovn_outbound *outbound, uint32_t class) {
    uint32_t number = outbound->rings[class].first + outbound->rings[class].count;
    return outbound->memory + (size_t)place_of(class, number) * outbound->slot_bytes;
}

void zovn_outbound_add(struct zovn_outbound *outbound, uint32_t class, uint32_t at,
                       uint32_t length) {
    uint32_t number = outbound->rings[class].first + outbound->rings[class].count++;
    outbound->rings[class].frames[number % ZOVN_OUT_RING] =
        (struct zovn_leaving){outbound->sequence++, at, length};
}

static const struct zovn_leaving *first_of(const struct zovn_outbound *outbound, uint32_t class) {
    return &outbound->rings[class].frames[outbound->rings[class].first];
}

int32_t zovn_outbound_next(const struct zovn_outbound *outbound, const uint8_t **bytes,
                           uint32_t *length) {
    int32_t next = -1;
    for (uint32_t i = 0; i < ZOVN_PFC_CLASSES; i++)
        if (is_open(outbound, i) && outbound->rings[i].count &&
            (next < 0 ||
             first_of(outbound, i)->sequence < first_of(outbound, (uint32_t)next)->sequence))
            next = (int32_t)i;
    if (next < 0)
        return -1;
    const struct zovn_leaving *frame = first_of(outbound, (uint32_t)next);
    uint32_t place = place_of((uint32_t)next, outbound->rings[next].first);
    *bytes = outbound->memory + (size_t)place * outbound->slot_bytes + frame->at;
    *length = frame->length;
    return next;
}

void zovn_outbound_sent(struct zovn_outbound *outbound, uint32_t class, uint64_t now_ns) {
    zovn_pace_sent(&outbound->pace, now_ns, zovn_line_bytes(first_of(outbound, class)->length));
    outbound->rings[class].first = (outbound->rings[class].first + 1) % ZOVN_OUT_RING;
    outbound->rings[class].count--;
}

uint64_t zovn_outbound_due(const struct zovn_outbound *outbound, uint64_t now_ns) {
    const uint8_t *bytes;
    uint32_t length;
    return zovn_outbound_next(outbound, &bytes, &length) < 0
               ? UINT64_MAX
               : zovn_pace_due(&outbound->pace, now_ns);
}
