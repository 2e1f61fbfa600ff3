// The clock and the pending events, in a heap by time and then by order of creation.
#ifndef EVENTS_H
#define EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PS_PER_SECOND INT64_C(1000000000000)

enum event_kind {
    EVENT_ARRIVAL,     // a packet (detail) comes off a link (subject)
    EVENT_WAKE,        // a link (subject) may send its next packet
    EVENT_PAUSE,       // a link (subject) has been told to stop a queue (detail)
    EVENT_RESUME,      // and to start it again
    EVENT_RETRANSMIT,  // the retransmission timer of an endpoint (subject)
    EVENT_ACKNOWLEDGE, // its timer of delayed acknowledgements
    EVENT_BACKGROUND,  // a VM (subject) starts its next background flow
    EVENT_QUERY,       // the next query arrives
    EVENT_FLOW,        // a flow (subject) starts
};

struct event {
    int64_t time_ps;
    uint64_t order_kind; // order of creation, and the kind in the low 8 bits
    uint32_t subject, detail;
};

struct events {
    struct event *heap;
    size_t count, room;
    uint64_t order;
    int64_t now_ps;
};

void events_add(struct events *events, int64_t time_ps, enum event_kind kind, uint32_t subject,
                uint32_t detail);

// Remove the next event and advance the clock to it; false if there is none.
bool events_next(struct events *events, struct event *event);

static inline enum event_kind event_kind(const struct event *event) {
    return (enum event_kind)(event->order_kind & 0xFF);
}

#endif
