/* Ends of frames, one by one, and of all from or to a port. */
#include "switch/outcome.h"

#include "switch/parking.h"

static void give_back(struct zovn_member *source, uint32_t reference) {
    if (zovn_parking_of(source, reference)) {
        zovn_parking_leave(source, reference);
        source->counters.parked--;
        return;
    }
    source->slots[reference].held = false;
    source->counters.held--;
    source->port->calls->complete(source->port, (uint16_t)reference);
}

void zovn_end(struct zovn_member *source, uint32_t reference, enum zovn_reason reason) {
    if (reason == ZOVN_REASONS)
        source->counters.delivered++;
    else
        source->counters.drops[reason]++;
    give_back(source, reference);
}

void zovn_ended(struct zovn_switch *vswitch, const struct zovn_place *at, uint32_t reference,
                enum zovn_reason reason) {
    struct zovn_member *source = vswitch->members[at->source];
    uint32_t part = vswitch->members[at->destination]->part;
    if (source->part == part || vswitch->alone)
        zovn_end(source, reference, reason);
    else
        zovn_channel_put(
            &source->ends[part],
            (struct zovn_passed){reference, (uint8_t)at->destination, (uint8_t)reason});
}

static void complete_all(struct zovn_port *port, const uint16_t *heads, uint32_t count) {
    if (port->complete_all)
        port->complete_all(port, heads, count);
    else
        for (uint32_t i = 0; i < count; i++)
            port->calls->complete(port, heads[i]);
}

static void end_all(struct zovn_member *source, const uint16_t *heads, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        source->slots[heads[i]].held = false;
    source->counters.delivered += count;
    source->counters.held -= count;
    complete_all(source->port, heads, count);
}

void zovn_delivered(struct zovn_switch *vswitch, const struct zovn_place *at, const uint16_t *heads,
                    uint32_t count) {
    struct zovn_member *source = vswitch->members[at->source];
    if (source->part == vswitch->members[at->destination]->part)
        end_all(source, heads, count);
    else
        for (uint32_t i = 0; i < count; i++)
            zovn_ended(vswitch, at, heads[i], ZOVN_REASONS);
}

static void drop_queue(struct zovn_switch *vswitch, const struct zovn_place *at,
                       enum zovn_reason reason) {
    while (vswitch->members[at->destination]->queues[at->class].from[at->source].count)
        zovn_ended(vswitch, at, zovn_queue_pop(vswitch, at), reason);
}

void zovn_drop_to(struct zovn_switch *vswitch, uint32_t destination, uint32_t classes,
                  enum zovn_reason reason) {
    for (uint32_t class = 0; class < ZOVN_CLASSES; class++)
        for (uint32_t source = 0; classes >> class & 1 && source < vswitch->end; source++)
            drop_queue(vswitch, &(struct zovn_place){destination, source, class}, reason);
}

void zovn_drop_parked(struct zovn_switch *vswitch, uint32_t source, uint32_t reference,
                      enum zovn_reason reason) {
    struct zovn_member *member = vswitch->members[source];
    const struct zovn_parked *parked = zovn_parking_of(member, reference);
    while (zovn_set_any(&parked->waits)) {
        uint32_t destination = zovn_set_first(&parked->waits);
        struct zovn_place at = {destination, source, parked->facts.class};
        zovn_queue_unlink(vswitch, &at, reference + destination);
        zovn_end(member, reference + destination, reason);
    }
}

/* What was peeked, but not classified yet, comes in and is dropped. */
static void drop_peeked(struct zovn_member *source, enum zovn_reason reason) {
    for (; source->heads_at < source->heads_end; source->heads_at++) {
        source->counters.in++;
        source->counters.drops[reason]++;
        source->port->calls->complete(source->port, source->heads[source->heads_at]);
    }
}

void zovn_drop_from(struct zovn_switch *vswitch, uint32_t source, enum zovn_reason reason) {
    for (uint32_t destination = 0; destination < vswitch->end; destination++)
        for (uint32_t class = 0; vswitch->members[destination] && class < ZOVN_CLASSES; class++)
            drop_queue(vswitch, &(struct zovn_place){destination, source, class}, reason);
    drop_peeked(vswitch->members[source], reason);
}
