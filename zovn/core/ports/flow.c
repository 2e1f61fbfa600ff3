/* Finds what names a flow in a frame's first bytes, and hashes it. */
#include "ports/flow.h"

#include <string.h>

enum { TAG = 0x8100, IPV4 = 0x0800, IPV6 = 0x86dd, TCP = 6, FRAGMENT = 0x3fff };
enum { ETHERNET = 12, ADDRESSES4 = 8, ADDRESSES6 = 32, LOOKED_AT = 84, PORTS = 4 };

#define FACTOR UINT64_C(0x9e3779b97f4a7c15) /* 2^64 over the golden ratio */

/* The first bytes, with zeros behind them. */
struct view {
    uint8_t bytes[LOOKED_AT];
};

static uint16_t word_at(const struct view *view, uint32_t at) {
    return (uint16_t)(view->bytes[at] << 8 | view->bytes[at + 1]);
}

static uint64_t mix(uint64_t hash, const struct view *view, uint32_t at, uint32_t length) {
    for (uint32_t end = at + length; at < end; at += 4) {
        uint32_t part;
        memcpy(&part, &view->bytes[at], sizeof part);
        hash = (hash ^ part) * FACTOR;
        hash ^= hash >> 32;
    }
    return hash;
}

static uint64_t hash4(const struct view *view, uint32_t at) {
    uint64_t hash = mix(0, view, at + 12, ADDRESSES4);
    bool ports = view->bytes[at + 9] == TCP && !(word_at(view, at + 6) & FRAGMENT);
    return ports ? mix(hash, view, at + (view->bytes[at] & 15u) * 4, PORTS) : hash;
}

static uint64_t hash6(const struct view *view, uint32_t at) {
    uint64_t hash = mix(0, view, at + 8, ADDRESSES6);
    return view->bytes[at + 6] == TCP ? mix(hash, view, at + 40, PORTS) : hash;
}

static uint64_t hash_of(const struct view *view) {
    uint32_t at = ETHERNET + (word_at(view, ETHERNET) == TAG ? 4 : 0);
    switch (word_at(view, at)) {
    case IPV4:
        return hash4(view, at + 2);
    case IPV6:
        return hash6(view, at + 2);
    default:
        return mix(0, view, 0, ETHERNET);
    }
}

uint32_t zovn_flow_queue(const struct zovn_frame *frame, uint32_t count) {
    struct view view = {{0}};
    uint32_t length = frame->length < LOOKED_AT ? frame->length : LOOKED_AT;
    zovn_frame_peek(frame, view.bytes, length);
    return (uint32_t)((hash_of(&view) * FACTOR >> 32) * count >> 32);
}
