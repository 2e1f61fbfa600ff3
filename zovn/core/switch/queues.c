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

static struct zovn_class_queues *class_at(struct zovn_switch *vswitch,
                                          const struct zovn_place *at) {
    return &vswitch->members[at->destination]->queues[at->class];
}

static const struct zovn_facts *first_of(const struct zovn_switch *vswitch,
                                         const struct zovn_class_queues *class, uint32_t source) {
    return zovn_reference_facts(vswitch->members[source], class->from[source].head);
}

static uint32_t takes_of(const struct zovn_member *destination, const struct zovn_queue *queue) {
    return queue->cut ? 0 : destination->port->takes;
}

/* Of what a source sends next in a class: its first frame, or a segment of it. */
static uint32_t next_length(const struct zovn_switch *vswitch,
                            const struct zovn_member *destination,
                            const struct zovn_class_queues *class, uint32_t source) {
    const struct zovn_facts *facts = first_of(vswitch, class, source);
    if (__builtin_expect(!facts->offload.kind, 1))
        return facts->length;
    const struct zovn_queue *queue = &class->from[source];
    return zovn_offload_length(facts, takes_of(destination, queue), queue->done);
}

/* Only parked copies leave a queue from its middle, so only they know what is before them. */
static void note_previous(struct zovn_member *source, uint32_t reference, uint32_t previous) {
    struct zovn_parked *parked = zovn_parking_of(source, reference);
    if (parked)
        parked->previous[zovn_parking_destination(reference)] = previous;
}

void zovn_queue_push_run(struct zovn_switch *vswitch, const struct zovn_place *at, uint32_t first,
                         uint32_t last, uint32_t count, uint64_t bytes) {
    struct zovn_class_queues *class = class_at(vswitch, at);
    struct zovn_queue *queue = &class->from[at->source];
    if (queue->count)
        *next_of(vswitch->members[at->source], queue->tail) = first;
    else
        queue->head = first;
    queue->tail = last;
    queue->count += count;
    struct zovn_member *destination = vswitch->members[at->destination];
    zovn_set_add(&class->sources, at->source);
    destination->classes |= 1u << at->class;
    class->bytes += bytes;
    destination->counters.waiting_bytes += bytes;
    destination->counters.waiting += count;
}

void zovn_queue_push(struct zovn_switch *vswitch, const struct zovn_place *at, uint32_t reference) {
    struct zovn_member *source = vswitch->members[at->source];
    *next_of(source, reference) = ZOVN_NONE;
    note_previous(source, reference, class_at(vswitch, at)->from[at->source].tail);
    zovn_queue_push_run(vswitch, at, reference, reference, 1,
                        zovn_reference_facts(source, reference)->length);
}

/* A queue that is empty has no turn, and so has a class. */
static void end_turn(struct zovn_member *destination, const struct zovn_place *at) {
    struct zovn_class_queues *class = &destination->queues[at->class];
    class->from[at->source].credit = 0;
    zovn_set_remove(&class->sources, at->source);
    if (!zovn_set_any(&class->sources)) {
        class->credit = 0;
        destination->classes &= ~(1u << at->class);
    }
}

static void count_out(struct zovn_switch *vswitch, const struct zovn_place *at, uint32_t count,
                      uint64_t bytes) {
    struct zovn_member *destination = vswitch->members[at->destination];
    struct zovn_class_queues *class = class_at(vswitch, at);
    class->bytes -= bytes;
    destination->counters.waiting_bytes -= bytes;
    destination->counters.waiting -= count;
    class->from[at->source].count -= count;
    if (!class->from[at->source].count)
        end_turn(destination, at);
}

static void count_one_out(struct zovn_switch *vswitch, const struct zovn_place *at,
                          uint32_t reference) {
    count_out(vswitch, at, 1,
              zovn_reference_facts(vswitch->members[at->source], reference)->length);
}

uint32_t zovn_queue_pop(struct zovn_switch *vswitch, const struct zovn_place *at) {
    struct zovn_queue *queue = &class_at(vswitch, at)->from[at->source];
    uint32_t reference = queue->head;
    queue->head = *next_of(vswitch->members[at->source], reference);
    queue->done = 0;
    queue->cut = false;
    count_one_out(vswitch, at, reference);
    return reference;
}

void zovn_queue_unlink(struct zovn_switch *vswitch, const struct zovn_place *at,
                       uint32_t reference) {
    struct zovn_member *source = vswitch->members[at->source];
    struct zovn_queue *queue = &class_at(vswitch, at)->from[at->source];
    if (reference == queue->head) {
        zovn_queue_pop(vswitch, at);
        return;
    }
    uint32_t previous = zovn_parking_of(source, reference)->previous[at->destination];
    uint32_t next = *next_of(source, reference);
    *next_of(source, previous) = next;
    if (reference == queue->tail)
        queue->tail = previous;
    else
        note_previous(source, next, previous);
    count_one_out(vswitch, at, reference);
}

/* Deficit round robin (Shreedhar and Varghese 1995): a turn adds a quantum, unused credit stays. */
static uint32_t source_turn(const struct zovn_switch *vswitch,
                            const struct zovn_member *destination,
                            struct zovn_class_queues *class) {
    uint32_t source = class->turn;
    while (!zovn_set_has(&class->sources, source) ||
           next_length(vswitch, destination, class, source) > class->from[source].credit) {
        source = zovn_set_after(&class->sources, source);
        class->from[source].credit += ZOVN_QUANTUM;
    }
    return class->turn = source;
}

static uint32_t next_class(uint32_t classes, uint32_t after) {
    uint32_t later = classes & ~0u << (after + 1);
    return (uint32_t)__builtin_ctz(later ? later : classes);
}

/* The same among classes, with quanta by weight. A class that has frames, but no room, loses what
 * is left of its turn: else this would add up while it waits, and then hold up the others. */
static uint32_t weighted_turn(const struct zovn_switch *vswitch, struct zovn_member *destination,
                              uint32_t classes) {
    for (;;) {
        uint32_t turn = destination->class_turn;
        struct zovn_class_queues *class = &destination->queues[turn];
        if (classes >> turn & 1) {
            uint32_t source = source_turn(vswitch, destination, class);
            if (next_length(vswitch, destination, class, source) <= class->credit)
                return turn;
        } else {
            class->credit = 0;
        }
        turn = destination->class_turn = next_class(classes, turn);
        destination->queues[turn].credit +=
            (uint64_t)ZOVN_QUANTUM * vswitch->settings.classes[turn].weight;
    }
}

void zovn_queue_turn(struct zovn_switch *vswitch, uint32_t destination, uint32_t classes,
                     struct zovn_place *at) {
    struct zovn_member *member = vswitch->members[destination];
    uint32_t strict = classes & vswitch->strict;
    at->destination = destination;
    if (strict) {
        at->class = 31 - (uint32_t)__builtin_clz(strict);
        at->source = source_turn(vswitch, member, &member->queues[at->class]);
    } else {
        at->class = weighted_turn(vswitch, member, classes);
        at->source = member->queues[at->class].turn;
    }
}

static void charge(struct zovn_switch *vswitch, const struct zovn_place *at, uint64_t bytes) {
    struct zovn_class_queues *class = class_at(vswitch, at);
    class->from[at->source].credit -= bytes;
    if (vswitch->settings.classes[at->class].weight)
        class->credit -= bytes;
}

void zovn_queue_charge(struct zovn_switch *vswitch, const struct zovn_place *at) {
    const struct zovn_class_queues *class = class_at(vswitch, at);
    charge(vswitch, at, next_length(vswitch, vswitch->members[at->destination], class, at->source));
}

uint64_t zovn_queue_credit(const struct zovn_switch *vswitch, const struct zovn_place *at) {
    const struct zovn_class_queues *class = &vswitch->members[at->destination]->queues[at->class];
    uint64_t credit = class->from[at->source].credit;
    bool weighted = vswitch->settings.classes[at->class].weight;
    return weighted && class->credit < credit ? class->credit : credit;
}

void zovn_queue_pop_run(struct zovn_switch *vswitch, const struct zovn_place *at, uint32_t last,
                        uint32_t count, uint64_t bytes) {
    charge(vswitch, at, bytes);
    class_at(vswitch, at)->from[at->source].head = vswitch->members[at->source]->slots[last].next;
    count_out(vswitch, at, count, bytes);
}

bool zovn_queue_advance(struct zovn_switch *vswitch, const struct zovn_place *at) {
    struct zovn_class_queues *class = class_at(vswitch, at);
    struct zovn_queue *queue = &class->from[at->source];
    uint32_t takes = takes_of(vswitch->members[at->destination], queue);
    uint32_t step = zovn_offload_step(first_of(vswitch, class, at->source), takes, queue->done);
    queue->done = (uint16_t)(queue->done + step);
    return step;
}

bool zovn_queue_cut(struct zovn_switch *vswitch, const struct zovn_place *at) {
    struct zovn_class_queues *class = class_at(vswitch, at);
    struct zovn_queue *queue = &class->from[at->source];
    const struct zovn_facts *facts = first_of(vswitch, class, at->source);
    uint32_t takes = takes_of(vswitch->members[at->destination], queue);
    bool shorter = facts->payload_at && zovn_offload_length(facts, takes, 0) == facts->length &&
                   zovn_offload_length(facts, 0, 0) < facts->length;
    queue->cut |= shorter; /* until it is popped: its turn has credit for a segment */
    return shorter;
}

const struct zovn_facts *zovn_queue_finish(struct zovn_switch *vswitch, const struct zovn_place *at,
                                           struct zovn_finished *finished,
                                           struct zovn_frame *frame) {
    struct zovn_class_queues *class = class_at(vswitch, at);
    const struct zovn_queue *queue = &class->from[at->source];
    uint32_t takes = takes_of(vswitch->members[at->destination], queue);
    return zovn_offload_finish(finished, first_of(vswitch, class, at->source), takes, queue->done,
                               frame);
}
