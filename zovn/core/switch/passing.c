/* Passes references between parts. */
#include "switch/passing.h"

#include "switch/offload.h"
#include "switch/outcome.h"
#include "switch/parking.h"

static bool passes(const struct zovn_switch *vswitch) {
    return vswitch->settings.threads > 1;
}

/* Return why a frame may not wait for a destination, or ZOVN_REASONS. */
static enum zovn_reason refusal(const struct zovn_switch *vswitch, const struct zovn_place *at,
                                const struct zovn_facts *facts) {
    const struct zovn_member *member = vswitch->members[at->destination];
    uint64_t limit = vswitch->settings.classes[at->class].limit_bytes;
    if (facts->offload.flags && !zovn_offload_fits(facts, member->port->takes))
        return ZOVN_OFFLOAD;
    if (member->lanes[zovn_lane_of(member, at->class)].stalled)
        return ZOVN_STALLED;
    bool full = limit && member->queues[at->class].bytes + facts->length > limit;
    return full ? ZOVN_CONGESTION : ZOVN_REASONS;
}

static inline __attribute__((always_inline)) enum zovn_reason
queue(struct zovn_switch *vswitch, const struct zovn_place *at, uint32_t reference) {
    const struct zovn_member *source = vswitch->members[at->source];
    enum zovn_reason reason = refusal(vswitch, at, zovn_reference_facts(source, reference));
    if (reason == ZOVN_REASONS)
        zovn_queue_push(vswitch, at, reference);
    return reason;
}

static void pass(const struct zovn_member *source, uint32_t part, uint32_t destination,
                 uint32_t reference) {
    struct zovn_passed passed = {.reference = reference, .destination = (uint8_t)destination};
    zovn_channel_put(&source->passed[part], passed);
}

enum zovn_reason zovn_send(struct zovn_switch *vswitch, const struct zovn_place *at,
                           uint32_t reference) {
    const struct zovn_member *source = vswitch->members[at->source];
    uint32_t part = vswitch->members[at->destination]->part;
    if (source->part == part)
        return queue(vswitch, at, reference);
    pass(source, part, at->destination, reference);
    return ZOVN_REASONS;
}

void zovn_send_run(struct zovn_switch *vswitch, const struct zovn_place *at, uint32_t first,
                   uint32_t last, uint32_t count, uint64_t bytes) {
    const struct zovn_member *source = vswitch->members[at->source];
    uint32_t part = vswitch->members[at->destination]->part;
    if (source->part == part)
        zovn_queue_push_run(vswitch, at, first, last, count, bytes);
    else
        for (uint32_t head = first; head != ZOVN_NONE; head = source->slots[head].next)
            pass(source, part, at->destination, head);
}

static void arrive(struct zovn_switch *vswitch, uint32_t source, const struct zovn_passed *passed) {
    const struct zovn_facts *facts =
        zovn_reference_facts(vswitch->members[source], passed->reference);
    const struct zovn_place at = {passed->destination, source, facts->class};
    enum zovn_reason reason = queue(vswitch, &at, passed->reference);
    if (reason != ZOVN_REASONS)
        zovn_ended(vswitch, &at, passed->reference, reason);
}

/* Begin to load what is needed of references: other threads wrote there. */
static void prefetch(const struct zovn_member *source, uint32_t reference) {
    if (!zovn_parking_of(source, reference))
        __builtin_prefetch(&source->slots[reference], 1);
}

static uint32_t take(struct zovn_channel *channel, const struct zovn_member *source,
                     struct zovn_passed *batch) {
    uint32_t count = 0;
    for (; count < ZOVN_BATCH && zovn_channel_take(channel, &batch[count]); count++)
        prefetch(source, batch[count].reference);
    return count;
}

uint32_t zovn_take_passed(struct zovn_switch *vswitch, uint32_t source, uint32_t part) {
    const struct zovn_member *member = vswitch->members[source];
    struct zovn_passed batch[ZOVN_BATCH];
    uint32_t count = take(&member->passed[part], member, batch);
    for (uint32_t i = 0; i < count; i++)
        arrive(vswitch, source, &batch[i]);
    return count;
}

uint32_t zovn_take_ends(struct zovn_switch *vswitch, uint32_t source) {
    struct zovn_member *member = vswitch->members[source];
    struct zovn_passed batch[ZOVN_BATCH];
    uint32_t all = 0;
    for (uint32_t part = 0; member->ends && part < vswitch->settings.threads; part++) {
        uint32_t count = take(&member->ends[part], member, batch);
        for (uint32_t i = 0; i < count; i++)
            zovn_end(member, batch[i].reference, batch[i].reason);
        all += count;
    }
    return all;
}

void zovn_show_passed(struct zovn_switch *vswitch, uint32_t source) {
    struct zovn_member *member = vswitch->members[source];
    for (uint32_t part = 0; member->passed && part < vswitch->settings.threads; part++)
        if (zovn_channel_show(&member->passed[part]))
            vswitch->parts[member->part].shown |= 1u << part;
}

void zovn_show_ends(struct zovn_switch *vswitch, uint32_t part) {
    for (uint32_t i = 0; passes(vswitch) && i < vswitch->end; i++)
        if (vswitch->members[i] && zovn_channel_show(&vswitch->members[i]->ends[part]))
            vswitch->parts[part].shown |= 1u << vswitch->members[i]->part;
}

static uint32_t take_from(struct zovn_switch *vswitch, uint32_t source) {
    uint32_t count = 0;
    zovn_show_passed(vswitch, source);
    for (uint32_t part = 0; part < vswitch->settings.threads; part++)
        count += zovn_take_passed(vswitch, source, part);
    for (uint32_t part = 0; part < vswitch->settings.threads; part++)
        zovn_show_ends(vswitch, part);
    return count + zovn_take_ends(vswitch, source);
}

void zovn_take_all(struct zovn_switch *vswitch) {
    for (uint32_t i = 0; passes(vswitch) && i < vswitch->end; i++)
        while (vswitch->members[i] && take_from(vswitch, i)) {
        }
}

bool zovn_alone(struct zovn_switch *vswitch, uint32_t port) {
    struct zovn_member *member = vswitch->members[port];
    if (!passes(vswitch) || vswitch->alone)
        return true;
    member->waits_alone = true;
    vswitch->parts[member->part].shown |= 1;
    atomic_store_explicit(&vswitch->wants_alone, true, memory_order_release);
    return false;
}
