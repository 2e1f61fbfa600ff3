/* Floods, and which ports may have a frame at all. */
#include "switch/flood.h"

#include "switch/offload.h"
#include "switch/parking.h"
#include "switch/queues.h"

bool zovn_is_target(const struct zovn_switch *vswitch, uint32_t source, uint32_t port,
                    uint16_t vlan) {
    const struct zovn_member *member = vswitch->members[port];
    return port != source && member && member->running && zovn_carries(&member->settings, vlan);
}

struct zovn_set zovn_targets(const struct zovn_switch *vswitch, uint32_t source, uint16_t vlan) {
    struct zovn_set targets = {0};
    for (uint32_t port = 0; port < vswitch->end; port++)
        if (zovn_is_target(vswitch, source, port, vlan))
            zovn_set_add(&targets, port);
    return targets;
}

enum zovn_reason zovn_refusal(const struct zovn_switch *vswitch, uint32_t destination,
                              const struct zovn_facts *facts) {
    const struct zovn_member *member = vswitch->members[destination];
    uint64_t limit = vswitch->settings.classes[facts->class].limit_bytes;
    if (facts->offload.flags && !zovn_offload_fits(facts, member->port->takes))
        return ZOVN_OFFLOAD;
    if (member->lanes[zovn_lane_of(member, facts->class)].stalled)
        return ZOVN_STALLED;
    bool full = limit && member->queues[facts->class].bytes + facts->length > limit;
    return full ? ZOVN_CONGESTION : ZOVN_REASONS;
}

bool zovn_may_flood(const struct zovn_switch *vswitch, uint32_t source, uint16_t head) {
    const struct zovn_member *member = vswitch->members[source];
    return member->parked_count < vswitch->settings.parked ||
           vswitch->settings.classes[member->slots[head].facts.class].limit_bytes;
}

static void queue_copy(struct zovn_switch *vswitch, uint32_t source, uint32_t destination,
                       uint32_t reference) {
    struct zovn_member *member = vswitch->members[source];
    struct zovn_parked *parked = zovn_parking_of(member, reference);
    enum zovn_reason reason = zovn_refusal(vswitch, destination, &parked->facts);
    if (reason != ZOVN_REASONS) {
        member->counters.drops[reason]++;
        return;
    }
    parked->references++;
    member->counters.parked++;
    struct zovn_place at = {destination, source, parked->facts.class};
    zovn_queue_push(vswitch, &at, reference + destination);
}

/* The sender gets its frame back. The reference that is held here keeps the frame until all
 * destinations were asked. */
static void queue_copies(struct zovn_switch *vswitch, uint32_t source, uint32_t reference,
                         struct zovn_set left) {
    struct zovn_member *member = vswitch->members[source];
    struct zovn_parked *parked = zovn_parking_of(member, reference);
    for (parked->references = 1; zovn_set_any(&left);) {
        uint32_t destination = zovn_set_first(&left);
        zovn_set_remove(&left, destination);
        queue_copy(vswitch, source, destination, reference);
    }
    zovn_parking_leave(member, parked);
}

enum zovn_reason zovn_flood(struct zovn_switch *vswitch, uint32_t source, uint16_t head,
                            const struct zovn_frame *frame, const struct zovn_set *targets) {
    struct zovn_member *member = vswitch->members[source];
    uint32_t count = zovn_set_size(targets);
    uint32_t reference =
        zovn_parking_take(member, vswitch->settings.parked, &member->slots[head].facts, frame);
    member->counters.copies += count - 1;
    if (reference == ZOVN_NONE) {
        member->counters.drops[ZOVN_CONGESTION] += count - 1;
        return ZOVN_CONGESTION;
    }
    queue_copies(vswitch, source, reference, *targets);
    member->slots[head].held = false;
    member->counters.held--;
    member->port->calls->complete(member->port, head);
    return ZOVN_REASONS;
}
