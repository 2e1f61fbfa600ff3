/* Checks counters against queues, slots and parking; the laws of switch/switch.h. */
#include <stddef.h>

#include "switch/parking.h"
#include "switch/queues.h"
#include "switch/switch.h"

/* What queues and memory show of a source. */
struct found {
    uint64_t held, parked;
};

static bool counts_hold(const struct zovn_counters *counters) {
    uint64_t ended = counters->delivered + counters->held + counters->parked;
    for (uint32_t i = 0; i < ZOVN_REASONS; i++)
        ended += counters->drops[i];
    return counters->in + counters->copies == ended;
}

/* Walk one queue, from its head to its tail. */
static const char *walk(const struct zovn_member *source, const struct zovn_queue *queue,
                        uint32_t destination, struct found *found, uint64_t *bytes) {
    uint32_t reference = queue->head, last = ZOVN_NONE;
    for (uint32_t i = 0; i < queue->count; i++) {
        struct zovn_parked *parked = zovn_parking_of(source, reference);
        if (parked ? zovn_parking_destination(reference) != destination ||
                         !zovn_set_has(&parked->waits, destination)
                   : !source->slots[reference].held)
            return "a queue has a frame that is not held";
        if (parked && i && parked->previous[destination] != last)
            return "a parked copy does not know what is before it";
        found->held += !parked;
        found->parked += !!parked;
        *bytes += zovn_reference_facts(source, reference)->length;
        last = reference;
        reference = parked ? parked->next[destination] : source->slots[reference].next;
    }
    return queue->count && last != queue->tail ? "a queue does not end with its tail" : NULL;
}

static const char *check_class(const struct zovn_switch *vswitch, uint32_t destination,
                               uint32_t class, struct found *found) {
    const struct zovn_class_queues *queues = &vswitch->members[destination]->queues[class];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < ZOVN_MOST_PORTS; i++) {
        const struct zovn_queue *queue = &queues->from[i];
        if (zovn_set_has(&queues->sources, i) != (queue->count > 0))
            return "a set of sources is not that of the queues with frames";
        if (!queue->count && (queue->done || queue->cut))
            return "a queue without frames has sent a part of one";
        if (queue->credit >> 32 || queues->credit >> 32)
            return "a source or a class has more credit than its turns give";
        const char *problem =
            queue->count ? walk(vswitch->members[i], queue, destination, &found[i], &bytes) : NULL;
        if (problem)
            return problem;
    }
    if (zovn_set_any(&queues->sources) != (vswitch->members[destination]->classes >> class & 1))
        return "a set of classes is not that of those with frames";
    return bytes != queues->bytes ? "a class does not have as many bytes as its queues" : NULL;
}

static bool is_settled(const struct zovn_switch *vswitch, const struct zovn_member *member) {
    bool settled = true;
    for (uint32_t i = 0; member->passed && i < vswitch->settings.threads; i++)
        settled &= member->passed[i].taken == member->passed[i].put &&
                   member->ends[i].taken == member->ends[i].put;
    return settled;
}

static const char *check_source(const struct zovn_switch *vswitch, uint32_t port,
                                const struct found *found) {
    const struct zovn_member *member = vswitch->members[port];
    uint64_t references = 0, frames = 0;
    for (uint32_t i = 0; i < vswitch->settings.parked; i++) {
        references += zovn_set_size(&member->parked[i].waits);
        frames += zovn_set_any(&member->parked[i].waits);
    }
    if (!is_settled(vswitch, member))
        return "a reference is on its way, or its end";
    if (!counts_hold(&member->counters))
        return "in + copies is not delivered + held + parked + drops";
    if (found->held != member->counters.held)
        return "held is not the number of frames in the queues";
    if (found->parked != member->counters.parked || references != found->parked)
        return "parked is not the number of copies in the queues";
    return frames != member->parked_count ? "parked frames are miscounted" : NULL;
}

const char *zovn_switch_check(const struct zovn_switch *vswitch) {
    struct found found[ZOVN_MOST_PORTS] = {0};
    const char *problem = NULL;
    for (uint32_t i = 0; i < vswitch->end * ZOVN_CLASSES && !problem; i++)
        if (vswitch->members[i / ZOVN_CLASSES])
            problem = check_class(vswitch, i / ZOVN_CLASSES, i % ZOVN_CLASSES, found);
    for (uint32_t i = 0; i < vswitch->end && !problem; i++)
        if (vswitch->members[i])
            problem = check_source(vswitch, i, &found[i]);
    return problem;
}
