/* Floods, and which ports may have a frame at all. */
#include "switch/flood.h"

#include "switch/outcome.h"
#include "switch/parking.h"
#include "switch/passing.h"

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

static bool waits_for_long(const struct zovn_switch *vswitch, uint32_t source, uint64_t since_ns) {
    return zovn_now(vswitch, source) - since_ns >= vswitch->settings.stall_ns;
}

/* Drop the frame that is parked for longest, if that is too long. A destination that takes a frame now
 * and then is not stalled, but must not hold up all that this source sends. */
static bool make_room(struct zovn_switch *vswitch, uint32_t source) {
    struct zovn_member *member = vswitch->members[source];
    if (!waits_for_long(vswitch, source, member->oldest_ns))
        return false;
    uint32_t oldest = zovn_parking_oldest(member, vswitch->settings.parked);
    member->oldest_ns = zovn_parking_of(member, oldest)->since_ns;
    if (!waits_for_long(vswitch, source, member->oldest_ns) || !zovn_alone(vswitch, source))
        return false;
    zovn_drop_parked(vswitch, source, oldest, ZOVN_STALLED);
    return true;
}

void zovn_make_room(struct zovn_switch *vswitch, uint32_t source) {
    if (vswitch->members[source]->parked_count == vswitch->settings.parked)
        make_room(vswitch, source);
}

bool zovn_may_flood(struct zovn_switch *vswitch, uint32_t source, uint16_t head) {
    const struct zovn_member *member = vswitch->members[source];
    return member->parked_count < vswitch->settings.parked ||
           vswitch->settings.classes[member->slots[head].facts.class].limit_bytes ||
           make_room(vswitch, source);
}

static void queue_copy(struct zovn_switch *vswitch, uint32_t source, uint32_t destination,
                       uint32_t reference) {
    struct zovn_member *member = vswitch->members[source];
    struct zovn_parked *parked = zovn_parking_of(member, reference);
    const struct zovn_place at = {destination, source, parked->facts.class};
    enum zovn_reason reason = zovn_send(vswitch, &at, reference + destination);
    if (reason != ZOVN_REASONS) {
        member->counters.drops[reason]++;
        return;
    }
    zovn_set_add(&parked->waits, destination);
    member->counters.parked++;
}

/* The sender gets its frame back. One that no destination accepts has no reference: it leaves here. */
static void queue_copies(struct zovn_switch *vswitch, uint32_t source, uint32_t reference,
                         struct zovn_set left) {
    struct zovn_member *member = vswitch->members[source];
    struct zovn_parked *parked = zovn_parking_of(member, reference);
    parked->since_ns = zovn_now(vswitch, source);
    while (zovn_set_any(&left)) {
        uint32_t destination = zovn_set_first(&left);
        zovn_set_remove(&left, destination);
        queue_copy(vswitch, source, destination, reference);
    }
    if (!zovn_set_any(&parked->waits))
        zovn_parking_leave(member, reference);
}

bool zovn_flood_made(struct zovn_switch *vswitch, uint32_t source, const struct zovn_facts *facts,
                     const struct zovn_frame *frame, const struct zovn_set *targets) {
    struct zovn_member *member = vswitch->members[source];
    uint32_t reference = zovn_parking_take(member, vswitch->settings.parked, facts, frame);
    if (reference == ZOVN_NONE)
        return false;
    member->counters.in++;
    member->counters.in_bytes += facts->length;
    member->counters.copies += zovn_set_size(targets) - 1;
    queue_copies(vswitch, source, reference, *targets);
    return true;
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
