// The pending events: a heap of four branches, which has half the levels of one with two.
#include "events.h"
#include "memory.h"

static bool earlier(const struct event *a, const struct event *b) {
    return a->time_ps != b->time_ps ? a->time_ps < b->time_ps : a->order_kind < b->order_kind;
}

static void make_room(struct events *events) {
    if (events->count < events->room)
        return;
    events->room = events->room ? 2 * events->room : 1024;
    events->heap = memory_grow(events->heap, events->room, sizeof *events->heap);
}

void events_add(struct events *events, int64_t time_ps, enum event_kind kind, uint32_t subject,
                uint32_t detail) {
    make_room(events);
    struct event added = {time_ps, events->order++ << 8 | kind, subject, detail};
    size_t at = events->count++;
    while (at > 0 && earlier(&added, &events->heap[(at - 1) / 4])) {
        events->heap[at] = events->heap[(at - 1) / 4];
        at = (at - 1) / 4;
    }
    events->heap[at] = added;
}

static size_t earliest_child(const struct events *events, size_t at) {
    size_t first = 4 * at + 1, end = first + 4 < events->count ? first + 4 : events->count;
    size_t best = first;
    for (size_t child = first + 1; child < end; child++)
        if (earlier(&events->heap[child], &events->heap[best]))
            best = child;
    return best;
}

static void sink_last(struct events *events) {
    struct event moved = events->heap[events->count];
    size_t at = 0;
    while (4 * at + 1 < events->count) {
        size_t child = earliest_child(events, at);
        if (!earlier(&events->heap[child], &moved))
            break;
        events->heap[at] = events->heap[child];
        at = child;
    }
    events->heap[at] = moved;
}

bool events_next(struct events *events, struct event *event) {
    if (events->count == 0)
        return false;
    *event = events->heap[0];
    events->now_ps = event->time_ps;
    if (--events->count)
        sink_last(events);
    return true;
}
