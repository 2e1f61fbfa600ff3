/* Classifies plain frames that are like others before, and queues those of one queue together. */
#include <string.h>

#include "switch/like.h"
#include "switch/passing.h"
#include "switch/plain.h"

/* Frames that are linked to each other, and not to the others of their queue yet. */
struct run {
    const struct zovn_like *like; /* all of them; NULL: there are none */
    struct zovn_place at;
    uint32_t first, last, count;
    uint64_t bytes;
};

/* Return whether any number of frames may wait there, or are passed to the thread that says so. */
static bool is_open(const struct zovn_switch *vswitch, const struct zovn_place *at) {
    const struct zovn_member *member = vswitch->members[at->destination];
    return member->part != vswitch->members[at->source]->part ||
           (!vswitch->settings.classes[at->class].limit_bytes &&
            !member->lanes[zovn_lane_of(member, at->class)].stalled);
}

static void end_run(struct zovn_switch *vswitch, const struct run *run) {
    if (!run->count)
        return;
    struct zovn_counters *counters = &vswitch->members[run->at.source]->counters;
    counters->in += run->count;
    counters->in_bytes += run->bytes;
    counters->held += run->count;
    zovn_send_run(vswitch, &run->at, run->first, run->last, run->count, run->bytes);
}

/* Return false if its frames must be looked at one by one. */
static bool begin_run(struct zovn_switch *vswitch, uint32_t source, const struct zovn_like *like,
                      struct run *run) {
    end_run(vswitch, run);
    *run = (struct run){.at = {like->destination, source, like->facts.class}};
    if (is_open(vswitch, &run->at))
        run->like = like;
    return run->like;
}

static void add(struct zovn_member *source, uint16_t head, const struct zovn_segment *whole,
                struct run *run) {
    struct zovn_slot *slot = &source->slots[head];
    zovn_like_facts(&slot->facts, run->like, whole->bytes, whole->length);
    slot->whole = *whole;
    slot->next = ZOVN_NONE;
    slot->held = slot->plain = true;
    if (run->count++)
        source->slots[run->last].next = head;
    else
        run->first = head;
    run->last = head;
    run->bytes += whole->length;
}

/* Return whether the sender says nothing of a frame, which is what most say. */
static bool is_silent(const struct zovn_port *port, const struct zovn_segment *whole) {
    uint16_t flags_and_kind;
    memcpy(&flags_and_kind, whole->bytes - port->header_bytes, sizeof flags_and_kind);
    return !flags_and_kind;
}

/* Return false for a frame that is to be classified like any other. */
static bool classify(struct zovn_switch *vswitch, uint32_t source, uint32_t place,
                     struct run *run) {
    struct zovn_member *member = vswitch->members[source];
    const struct zovn_segment *whole = &member->wholes[place];
    if (member->slots[member->heads[place]].held || !whole->bytes ||
        !is_silent(member->port, whole))
        return false;
    const struct zovn_like *like = zovn_like_find(vswitch, source, whole->bytes);
    if (!like || (like != run->like && !begin_run(vswitch, source, like, run)))
        return false;
    add(member, member->heads[place], whole, run);
    return true;
}

uint32_t zovn_plain_classify(struct zovn_switch *vswitch, uint32_t source) {
    const struct zovn_member *member = vswitch->members[source];
    uint32_t place = member->heads_at;
    struct run run = {0};
    if (!member->port->find_wholes)
        return 0;
    while (place < member->heads_end && classify(vswitch, source, place, &run))
        place++;
    end_run(vswitch, &run);
    return place - member->heads_at;
}
