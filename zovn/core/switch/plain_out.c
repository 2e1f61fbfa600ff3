/* Moves runs of plain frames: what is the same for all of them is found once. */
#include "switch/plain.h"

#include "switch/outcome.h"
#include "switch/parking.h"

enum { MOST_FRAMES = 48 }; /* a quantum of the shortest frames */

/* The first frames of a queue. */
struct run {
    uint32_t count;
    uint16_t heads[MOST_FRAMES];
    struct zovn_plain frames[MOST_FRAMES];
};

bool zovn_plain_is(const struct zovn_slot *slot) {
    return slot->whole.bytes && !slot->facts.tagged && !slot->facts.offload.flags &&
           slot->facts.length >= ZOVN_HEADER;
}

/* Return whether all plain frames of a class go to a port as they are, as soon as there is room. */
static bool is_plain_way(const struct zovn_switch *vswitch, const struct zovn_place *at) {
    const struct zovn_member *member = vswitch->members[at->destination];
    return member->port->put_plain && !member->port->class_room && !member->settings.trunk &&
           !member->pace.rate_bps && !vswitch->settings.classes[at->class].mark_bytes;
}

static const struct zovn_slot *plain_at(const struct zovn_member *source, uint32_t reference) {
    const struct zovn_slot *slot =
        zovn_parking_of(source, reference) ? NULL : &source->slots[reference];
    return slot && slot->plain ? slot : NULL;
}

static void gather(const struct zovn_member *source, uint32_t reference, uint64_t credit,
                   uint32_t most, struct run *run) {
    for (run->count = 0; run->count < most; run->count++) {
        const struct zovn_slot *slot = plain_at(source, reference);
        if (!slot || slot->facts.length > credit)
            return;
        credit -= slot->facts.length;
        run->heads[run->count] = (uint16_t)reference;
        run->frames[run->count] =
            (struct zovn_plain){slot->facts.header, slot->whole.bytes, slot->facts.length};
        reference = slot->next;
    }
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static void leave(struct zovn_switch *vswitch, const struct zovn_place *at, const struct run *run,
                  uint32_t count) {
    struct zovn_member *member = vswitch->members[at->destination];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += run->frames[i].length;
    member->counters.out += count;
    member->counters.out_bytes += bytes;
    zovn_queue_pop_run(vswitch, at, run->heads[count - 1], count, bytes);
    zovn_delivered(vswitch, at, run->heads, count);
}

uint32_t zovn_plain_move(struct zovn_switch *vswitch, const struct zovn_place *at, uint32_t most) {
    struct zovn_port *port = vswitch->members[at->destination]->port;
    const struct zovn_member *source = vswitch->members[at->source];
    const struct zovn_queue *queue =
        &vswitch->members[at->destination]->queues[at->class].from[at->source];
    /* One frame is no run: `put` loads buffers for those after it. */
    const struct zovn_slot *first =
        queue->count > 1 && is_plain_way(vswitch, at) ? plain_at(source, queue->head) : NULL;
    if (!first || !port->plain_room(port, first->facts.length))
        return 0;
    struct run run;
    most = least(most, least(MOST_FRAMES, queue->count));
    gather(source, queue->head, zovn_queue_credit(vswitch, at), most, &run);
    uint32_t count = port->put_plain(port, run.frames, run.count);
    if (count)
        leave(vswitch, at, &run, count);
    return count;
}
