/* From a head to a queue: what the frame is, where it goes, and whether it may wait there. */
#include "switch/classify.h"

#include "switch/flood.h"
#include "switch/like.h"
#include "switch/outcome.h"
#include "switch/passing.h"
#include "switch/plain.h"

/* From here on the frame is counted. */
static void accept(struct zovn_member *source, uint16_t head) {
    source->counters.in++;
    source->counters.in_bytes += source->slots[head].facts.length;
    source->counters.held++;
    source->slots[head].held = true;
}

/* Return whether the source's address is known to be here. */
static bool learn(struct zovn_switch *vswitch, uint32_t port, const struct zovn_facts *facts) {
    struct zovn_member *member = vswitch->members[port];
    struct zovn_addresses *addresses = &vswitch->addresses;
    uint64_t key = zovn_address_key(facts->vlan, facts->header + 6);
    if (zovn_recalls(addresses, &member->learned, key))
        return true;
    enum zovn_learned learned =
        zovn_addresses_learn(addresses, key, port, member->clock_ns, &member->learned);
    member->counters.moves += learned == ZOVN_MOVED;
    member->counters.not_learned += learned == ZOVN_NOT_LEARNED;
    return learned != ZOVN_NOT_LEARNED;
}

static enum zovn_reason queue_one(struct zovn_switch *vswitch, uint32_t source, uint16_t head,
                                  uint32_t destination) {
    uint8_t class = vswitch->members[source]->slots[head].facts.class;
    return zovn_send(vswitch, &(struct zovn_place){destination, source, class}, head);
}

/* Return the port behind which a frame's address is known, or -1: it then goes to all of its VLAN. */
static int32_t known_port(struct zovn_switch *vswitch, struct zovn_member *member,
                          const struct zovn_facts *facts) {
    if (facts->header[0] & 1)
        return -1;
    uint64_t key = zovn_address_key(facts->vlan, facts->header);
    if (!zovn_recalls(&vswitch->addresses, &member->found, key) &&
        !zovn_addresses_find(&vswitch->addresses, key, member->clock_ns, &member->found))
        return -1;
    return (int32_t)member->found.port;
}

static void send_known(struct zovn_switch *vswitch, uint32_t source, uint16_t head,
                       uint32_t destination) {
    struct zovn_member *member = vswitch->members[source];
    const struct zovn_facts *facts = &member->slots[head].facts;
    bool learned = learn(vswitch, source, facts);
    accept(member, head);
    enum zovn_reason reason = ZOVN_NO_DESTINATION;
    if (zovn_is_target(vswitch, source, destination, facts->vlan)) {
        if (learned)
            zovn_like_note(member, facts);
        reason = queue_one(vswitch, source, head, destination);
    }
    if (reason != ZOVN_REASONS)
        zovn_end(member, head, reason);
}

/* Return false for a frame that must stay where it is. */
static bool send_all(struct zovn_switch *vswitch, uint32_t source, uint16_t head,
                     const struct zovn_frame *frame) {
    struct zovn_member *member = vswitch->members[source];
    struct zovn_set targets = zovn_targets(vswitch, source, member->slots[head].facts.vlan);
    bool many = zovn_set_many(&targets);
    if (many && !zovn_may_flood(vswitch, source, head))
        return false;
    learn(vswitch, source, &member->slots[head].facts);
    accept(member, head);
    enum zovn_reason reason = ZOVN_NO_DESTINATION;
    if (many)
        reason = zovn_flood(vswitch, source, head, frame, &targets);
    else if (zovn_set_any(&targets))
        reason = queue_one(vswitch, source, head, zovn_set_first(&targets));
    if (reason != ZOVN_REASONS)
        zovn_end(member, head, reason);
    return true;
}

/* Return false for a frame that must stay where it is. */
static bool forward(struct zovn_switch *vswitch, uint32_t source, uint16_t head,
                    const struct zovn_frame *frame) {
    struct zovn_member *member = vswitch->members[source];
    int32_t known = known_port(vswitch, member, &member->slots[head].facts);
    if (known < 0)
        return send_all(vswitch, source, head, frame);
    send_known(vswitch, source, head, (uint32_t)known);
    return true;
}

static enum zovn_reason find(struct zovn_switch *vswitch, struct zovn_member *member, uint16_t head,
                             struct zovn_frame *frame) {
    struct zovn_slot *slot = &member->slots[head];
    slot->facts.length = 0;
    enum zovn_frame_result result = member->port->calls->frame(member->port, head, frame);
    if (result != ZOVN_FRAME_OK)
        return result == ZOVN_FRAME_MALFORMED ? ZOVN_MALFORMED : ZOVN_TOO_LONG;
    slot->whole = zovn_frame_whole(frame);
    enum zovn_reason reason = zovn_facts_find(&slot->facts, frame, member->port->sends,
                                              &member->settings, &vswitch->settings);
    slot->plain = zovn_plain_is(slot);
    return reason;
}

static bool classify(struct zovn_switch *vswitch, uint32_t source, uint16_t head) {
    struct zovn_member *member = vswitch->members[source];
    if (member->slots[head].held) {
        member->port->fault = ZOVN_HEAD_TWICE;
        return false;
    }
    struct zovn_frame frame;
    enum zovn_reason reason = find(vswitch, member, head, &frame);
    if (reason == ZOVN_REASONS)
        return forward(vswitch, source, head, &frame);
    accept(member, head);
    zovn_end(member, head, reason);
    return true;
}

static void set_clock(struct zovn_member *member, uint64_t clock_ns) {
    if (member->clock_ns == clock_ns)
        return;
    member->clock_ns = clock_ns;
    member->learned.key = member->found.key = 0;
}

void zovn_learn(struct zovn_switch *vswitch, uint32_t port, const struct zovn_facts *facts) {
    struct zovn_member *member = vswitch->members[port];
    set_clock(member, vswitch->parts[member->part].clock_ns);
    learn(vswitch, port, facts);
}

static void peek(struct zovn_member *member) {
    struct zovn_port *port = member->port;
    member->heads_at = 0;
    member->heads_end = port->calls->peek(port, member->heads, ZOVN_BATCH);
    if (port->find_wholes)
        port->find_wholes(port, member->heads, member->heads_end, member->wholes);
}

/* Return how many were classified. */
static uint32_t classify_some(struct zovn_switch *vswitch, uint32_t source) {
    const struct zovn_member *member = vswitch->members[source];
    if (member->heads_at == member->heads_end)
        return 0;
    uint32_t count = zovn_plain_classify(vswitch, source);
    return count ? count : classify(vswitch, source, member->heads[member->heads_at]);
}

uint32_t zovn_classify(struct zovn_switch *vswitch, uint32_t source) {
    struct zovn_member *member = vswitch->members[source];
    set_clock(member, vswitch->parts[member->part].clock_ns);
    if (member->heads_at == member->heads_end) {
        if (member->draining)
            return 0;
        peek(member);
    }
    uint32_t begin = member->heads_at;
    for (uint32_t count; (count = classify_some(vswitch, source));)
        member->heads_at += count;
    return member->heads_at - begin;
}
