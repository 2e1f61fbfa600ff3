/* What a class of an input holds of a switch, and when its sender must stop; decisions only. */
#include "shares.h"

bool share_has_room(const struct share *share, const struct share_limits *limits, size_t length) {
    return share->bytes + length <= limits->room_bytes;
}

void share_take(struct share *share, size_t length) {
    share->bytes += length;
    if (share->bytes > share->most_bytes) {
        share->most_bytes = share->bytes;
    }
}

void share_give(struct share *share, size_t length) {
    share->bytes -= length;
}

enum share_word share_says(struct share *share, const struct share_limits *limits,
                           uint64_t now_ns) {
    if (share->stopped && share->bytes <= limits->xon_bytes) {
        share->stopped = false;
        return XON;
    }
    bool passed = share->bytes > limits->xoff_bytes;
    if (share->stopped ? now_ns < share->refresh_ns : !passed) {
        return NOTHING;
    }
    share->stopped = true;
    share->refresh_ns = now_ns + limits->refresh_ns;
    return XOFF;
}

uint64_t share_due_ns(const struct share *share) {
    return share->stopped ? share->refresh_ns : UINT64_MAX;
}
