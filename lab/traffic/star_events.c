/* What happens in a star, in order of time: frames come, lines take frames, pauses are renewed. */
#include <string.h>

#include "star_parts.h"

/* What happens next, and when. */
struct event {
    enum { ARRIVAL, BEGIN, REFRESH } what;
    size_t port, class;
    uint64_t at_ns;
};

static void send_pfc(struct star *star, struct port *to, size_t class, uint64_t quanta,
                     uint64_t now_ns) {
    struct pfc pfc = {.vector = 1U << class};
    char data[PFC_FRAME_BYTES];
    pfc.quanta[class] = (uint16_t)quanta;
    pfc_write(&pfc, to->address, data);
    struct star_frame *frame = pool_take(&star->pool, data, sizeof data);
    if (frame == NULL) {
        to->counts.missed++;
        return;
    }
    frame->class = CLASSES; /* it is of none */
    queue_add(&to->output.control, frame, now_ns);
}

/* Tell the sender of an input to stop or to go on, if it must hear so now. */
static void tell(struct star *star, struct port *in, size_t class, uint64_t now_ns) {
    enum share_word word = share_says(&in->shares[class], &in->limits, now_ns);
    if (word != NOTHING) {
        uint64_t *counts = word == XOFF ? in->counts.xoff_sent : in->counts.xon_sent;
        counts[class]++;
        send_pfc(star, in, class, word == XOFF ? star->settings.quanta : 0, now_ns);
    }
}

static bool is_lossless(const struct star *star, size_t class) {
    return star->settings.lossless >> class & 1;
}

/* Note what a host says of classes; only lossless ones obey. */
static void hear_pfc(const struct star *star, struct port *from, const struct pfc *pfc,
                     uint64_t now_ns) {
    struct star_counts *counts = &from->counts;
    for (size_t i = 0; i < CLASSES; i++) {
        if (pfc->vector >> i & 1) {
            uint64_t until_ns = now_ns + pfc_ns(pfc->quanta[i], from->output.rate_bps);
            (pfc->quanta[i] > 0 ? counts->xoff_received : counts->xon_received)[i]++;
            if (is_lossless(star, i)) {
                counts->paused_ns[i] += output_pause(&from->output, i, until_ns, now_ns);
            }
        }
    }
}

/* Return the port that has the destination; NULL for none, or the one that the frame came from. */
static struct port *destination(struct star *star, const struct star_frame *frame) {
    for (size_t i = 0; i < star->addresses; i++) {
        if (memcmp(star->table[i].address, frame->data, ADDRESS_BYTES) == 0) {
            return star->table[i].port == frame->from ? NULL : &star->ports[star->table[i].port];
        }
    }
    return NULL;
}

/* Return whether there is room for a frame; count it as lost otherwise. */
static bool admit(struct star *star, struct port *to, const struct star_frame *frame) {
    struct port *from = &star->ports[frame->from];
    size_t class = frame->class, length = frame->length;
    if (!is_lossless(star, class)) {
        bool room = to->output.classes[class].bytes + length <= star->settings.buffer_bytes;
        to->counts.dropped[class] += !room;
        return room;
    }
    bool room = share_has_room(&from->shares[class], &from->limits, length);
    from->counts.overflowed[class] += !room;
    return room;
}

/* Queue a frame for an output, or drop it. */
static void queue_frame(struct star *star, struct port *to, struct star_frame *frame,
                        uint64_t now_ns) {
    struct port *from = &star->ports[frame->from];
    struct share *share = &from->shares[frame->class];
    if (!admit(star, to, frame)) {
        pool_give(&star->pool, frame);
        return;
    }
    queue_add(&to->output.classes[frame->class], frame, now_ns);
    if (is_lossless(star, frame->class)) {
        share_take(share, frame->length);
        from->counts.most_bytes[frame->class] = share->most_bytes;
        tell(star, from, frame->class, now_ns);
    }
}

/* Queue a copy of a frame for every port that it did not come from. */
static void flood(struct star *star, const struct star_frame *frame, uint64_t now_ns) {
    struct star_counts *counts = &star->ports[frame->from].counts;
    for (size_t i = 0; i < star->settings.ports; i++) {
        struct star_frame *copy =
            i == frame->from ? NULL : pool_take(&star->pool, frame->data, frame->length);
        if (copy != NULL) {
            copy->from = frame->from;
            copy->class = frame->class;
            queue_frame(star, &star->ports[i], copy, now_ns);
        }
        counts->copies += copy != NULL;
        counts->missed += copy == NULL && i != frame->from;
    }
    counts->floods++;
}

/* A frame has come to the switch. */
static void enter(struct star *star, size_t port, uint64_t now_ns) {
    struct port *from = &star->ports[port];
    struct star_frame *frame = queue_remove(&from->arriving);
    struct pfc pfc;
    frame->from = port;
    frame->class = class_of(frame->data, frame->length);
    struct port *to = destination(star, frame);
    if (to != NULL) {
        queue_frame(star, to, frame, now_ns);
        return;
    }
    if (pfc_read(frame->data, frame->length, &pfc)) {
        hear_pfc(star, from, &pfc, now_ns);
    } else if (is_to_all(frame->data)) {
        flood(star, frame, now_ns);
    } else {
        from->counts.unknown++;
    }
    pool_give(&star->pool, frame);
}

/* The line takes a frame, which thus leaves the buffer. */
static void begin(struct star *star, struct port *to, uint64_t now_ns) {
    struct star_frame *frame = output_begin(&to->output);
    if (is_lossless(star, frame->class)) {
        struct port *from = &star->ports[frame->from];
        share_give(&from->shares[frame->class], frame->length);
        tell(star, from, frame->class, now_ns);
    }
}

static void consider(struct event *first, struct event other) {
    if (other.at_ns < first->at_ns) {
        *first = other;
    }
}

static struct event next_event(const struct star *star) {
    struct event first = {.at_ns = UINT64_MAX};
    for (size_t i = 0; i < star->settings.ports; i++) {
        const struct port *port = &star->ports[i];
        consider(&first, (struct event){BEGIN, i, 0, output_begins_ns(&port->output)});
        consider(&first, (struct event){ARRIVAL, i, 0, queue_due_ns(&port->arriving)});
        for (size_t j = 0; j < CLASSES; j++) {
            consider(&first, (struct event){REFRESH, i, j, share_due_ns(&port->shares[j])});
        }
    }
    return first;
}

void star_run(struct star *star, uint64_t now_ns) {
    for (struct event next; (next = next_event(star)).at_ns <= now_ns;) {
        if (next.what == ARRIVAL) {
            enter(star, next.port, next.at_ns);
        } else if (next.what == BEGIN) {
            begin(star, &star->ports[next.port], next.at_ns);
        } else {
            tell(star, &star->ports[next.port], next.class, next.at_ns);
        }
    }
}

uint64_t star_due_ns(const struct star *star) {
    uint64_t first = next_event(star).at_ns;
    for (size_t i = 0; i < star->settings.ports; i++) {
        uint64_t due_ns = queue_due_ns(&star->ports[i].output.line);
        first = due_ns < first ? due_ns : first;
    }
    return first;
}
