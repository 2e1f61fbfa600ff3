/* What a class of an input holds of a switch, and when its sender must stop; decisions only. */
#ifndef LAB_TRAFFIC_SHARES_H
#define LAB_TRAFFIC_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The same for all classes of an input. What is above xoff_bytes is headroom. */
struct share_limits {
    uint64_t room_bytes, xoff_bytes, xon_bytes;
    uint64_t refresh_ns; /* a pause is renewed so long after it was sent */
};

struct share {
    uint64_t bytes, most_bytes;
    bool stopped;
    uint64_t refresh_ns; /* when a pause is due again */
};

enum share_word { NOTHING, XOFF, XON };

bool share_has_room(const struct share *share, const struct share_limits *limits, size_t length);
void share_take(struct share *share, size_t length);
void share_give(struct share *share, size_t length);
/* Return what the sender must hear now. */
enum share_word share_says(struct share *share, const struct share_limits *limits, uint64_t now_ns);
/* Return when share_says() has something to say even if no frame comes or leaves. */
uint64_t share_due_ns(const struct share *share);

#endif
