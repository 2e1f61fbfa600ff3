/* Queues of references; strict classes, then weighted ones, and in each its sources by turns. */
#include "switch/queues.h"

#include "switch/parking.h"

const struct zovn_facts *zovn_reference_facts(const struct zovn_member *source,
                                              uint32_t reference) {
    const struct zovn_parked *parked = zovn_parking_of(source, reference);
    return parked ? &parked->facts : &source->slots[reference].facts;
}

static uint32_t *next_of(struct zovn_member *source, uint32_t reference) {
    struct zovn_parked *parked = zovn_parking_of(source, reference);
    return parked ? &parked->next[zovn_parking_destination(reference)]
                  : &source->slots[reference].next;
}

static struct zovn_class_queues *class_at(struct zovn_switch *vswitch, struct zovn_place at) {
    return &vswitch->members[at.destination]->queues[at.class];
}

static uint32_t length_at(struct zovn_switch *vswitch, struct zovn_place at) {
    uint32_t head = class_at(vswitch, at)->from[at.source].head;
    return zovn_reference_facts(vswitch->members[at.source], head)->length;
}

void zovn_queue_push(struct zovn_switch *vswitch, struct zovn_place at, uint32_t reference) {
    struct zovn_member *source = vswitch->members[at.source];
    struct zovn_class_queues *class = class_at(vswitch, at);
    struct zovn_queue *queue = &class->from[at.source];
    *next_of(source, reference) = ZOVN_NONE;
    if (queue->count++)
        *next_of(source, queue->tail) = reference;
    else
        queue->head = reference;
    queue->tail = reference;
    struct zovn_member *destination = vswitch->members[at.destination];
    uint32_t length = zovn_reference_facts(source, reference)->length;
    zovn_set_add(&class->sources, at.source);
    destination->classes |= 1u << at.class;
    class->bytes += length;
    destination->counters.waiting_bytes += length;
    destination->counters.waiting++;
}

/* A queue that is empty has no turn, and so has a class. */
uint32_t zovn_queue_pop(struct zovn_switch *vswitch, struct zovn_place at) {
    struct zovn_member *destination = vswitch->members[at.destination];
    struct zovn_class_queues *class = class_at(vswitch, at);
    struct zovn_queue *queue = &class->from[at.source];
    uint32_t reference = queue->head, length = length_at(vswitch, at);
    queue->head = *next_of(vswitch->members[at.source], reference);
    class->bytes -= length;
    destination->counters.waiting_bytes -= length;
    destination->counters.waiting--;
    if (--queue->count)
        return reference;
    queue->credit = 0;
    zovn_set_remove(&class->sources, at.source);
    if (!zovn_set_any(&class->sources)) {
        class->credit = 0;
        destination->classes &= ~(1u << at.class);
    }
    return reference;
}

/* Deficit round robin (Shreedhar and Varghese 1995): a turn adds a quantum, unused credit stays. */
static uint32_t source_turn(struct zovn_switch *vswitch, struct zovn_place at) {
    struct zovn_class_queues *class = class_at(vswitch, at);
    at.source = class->turn;
    while (!zovn_set_has(&class->sources, at.source) ||
           length_at(vswitch, at) > class->from[at.source].credit) {
        at.source = zovn_set_after(&class->sources, at.source);
        class->from[at.source].credit += ZOVN_QUANTUM;
    }
    return class->turn = at.source;
}

static uint32_t next_class(uint32_t classes, uint32_t after) {
    uint32_t later = classes & ~0u << (after + 1);
    return (uint32_t)__builtin_ctz(later ? later : classes);
}

/* The same among classes, with quanta by weight. */
static struct zovn_place weighted_turn(struct zovn_switch *vswitch, struct zovn_place at) {
    struct zovn_member *destination = vswitch->members[at.destination];
    at.class = destination->class_turn;
    for (;;) {
        if (destination->classes >> at.class & 1) {
            at.source = source_turn(vswitch, at);
            if (length_at(vswitch, at) <= class_at(vswitch, at)->credit)
                return at;
        }
        at.class = destination->class_turn = next_class(destination->classes, at.class);
        class_at(vswitch, at)->credit +=
            (uint64_t)ZOVN_QUANTUM * vswitch->settings.classes[at.class].weight;
    }
}

struct zovn_place zovn_queue_turn(struct zovn_switch *vswitch, uint32_t destination) {
    struct zovn_place at = {.destination = destination};
    uint32_t strict = vswitch->members[destination]->classes & vswitch->strict;
    if (!strict)
        return weighted_turn(vswitch, at);
    at.class = 31 - (uint32_t)__builtin_clz(strict);
    at.source = source_turn(vswitch, at);
    return at;
}

void zovn_queue_charge(struct zovn_switch *vswitch, struct zovn_place at) {
    struct zovn_class_queues *class = class_at(vswitch, at);
    uint32_t length = length_at(vswitch, at);
    class->from[at.source].credit -= length;
    if (vswitch->settings.classes[at.class].weight)
        class->credit -= length;
}
