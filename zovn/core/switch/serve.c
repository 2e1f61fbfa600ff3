/* Moves frames to a destination: copied once, from where they lie. */
#include "switch/serve.h"

#include "switch/edit.h"
#include "switch/offload.h"
#include "switch/outcome.h"
#include "switch/parking.h"
#include "switch/plain.h"

/* Where a frame lies in one piece. A held frame stays there, whatever its ring says meanwhile. */
static uint8_t *bytes_of(const struct zovn_member *source, uint32_t reference) {
    const struct zovn_parked *parked = zovn_parking_of(source, reference);
    return parked ? parked->bytes : source->slots[reference].whole.bytes;
}

/* Find a frame again. A sender that changed its length meanwhile does not get it delivered. */
static bool fetch(const struct zovn_member *source, uint32_t reference,
                  const struct zovn_facts *facts, struct zovn_frame *frame) {
    uint8_t *bytes = bytes_of(source, reference);
    if (bytes) {
        zovn_frame_begin(frame);
        zovn_frame_append(frame, bytes, facts->length);
    } else if (source->port->calls->frame(source->port, (uint16_t)reference, frame) !=
                   ZOVN_FRAME_OK ||
               frame->length != facts->length) {
        return false;
    }
    frame->offload = facts->offload;
    return true;
}

/* Return whether a lane takes frames, as far as that is not for the room that all lanes share. */
static bool is_open(const struct zovn_member *member, uint32_t lane) {
    return !member->port->class_room || member->port->class_room(member->port, lane);
}

static bool has_room(const struct zovn_member *member, uint32_t lane) {
    return is_open(member, lane) && member->port->calls->room(member->port);
}

/* As the frame's sender left it, or finished by the switch. */
static enum zovn_put_result put(struct zovn_switch *vswitch, const struct zovn_place *at,
                                const struct zovn_facts *facts, struct zovn_frame *frame) {
    struct zovn_member *member = vswitch->members[at->destination];
    uint64_t threshold = vswitch->settings.classes[at->class].mark_bytes;
    bool mark = threshold && member->queues[at->class].bytes > threshold;
    struct zovn_head head;
    struct zovn_finished finished;
    bool unfinished = facts->offload.flags;
    if ((unfinished || member->port->class_room) &&
        !has_room(member, zovn_lane_of(member, at->class)))
        return ZOVN_PUT_NO_ROOM;
    if (unfinished)
        facts = zovn_queue_finish(vswitch, at, &finished, frame);
    bool marked = zovn_edit(frame, &head, facts, mark, &member->settings);
    uint32_t length = frame->length; /* the port puts its own header before it */
    frame->class = (uint8_t)at->class;
    enum zovn_put_result result = member->port->calls->put(member->port, frame);
    if (result == ZOVN_PUT_DONE) {
        member->counters.out++;
        member->counters.out_bytes += length;
        zovn_pace_sent(&member->pace, zovn_now(vswitch, at->destination), length);
        member->counters.marked += marked;
        member->counters.finished += facts == &finished.facts;
    }
    return result;
}

static enum zovn_reason reason_of(enum zovn_put_result result) {
    if (result == ZOVN_PUT_DONE)
        return ZOVN_REASONS;
    if (result == ZOVN_PUT_NO_LOCATION)
        return ZOVN_NO_LOCATION;
    return result == ZOVN_PUT_REFUSED ? ZOVN_REFUSED : ZOVN_TOO_LONG;
}

/* Return false if there is no room: then nothing has changed. */
static bool move(struct zovn_switch *vswitch, const struct zovn_place *at) {
    struct zovn_member *source = vswitch->members[at->source];
    uint32_t reference = vswitch->members[at->destination]->queues[at->class].from[at->source].head;
    const struct zovn_facts *facts = zovn_reference_facts(source, reference);
    struct zovn_frame frame;
    bool whole = fetch(source, reference, facts, &frame);
    enum zovn_put_result result = whole ? put(vswitch, at, facts, &frame) : ZOVN_PUT_TOO_LONG;
    if (result == ZOVN_PUT_NO_ROOM)
        return false;
    if (result == ZOVN_PUT_TOO_LONG && whole && zovn_queue_cut(vswitch, at))
        return true;
    zovn_queue_charge(vswitch, at);
    if (result == ZOVN_PUT_DONE && facts->offload.kind && zovn_queue_advance(vswitch, at))
        return true;
    zovn_queue_pop(vswitch, at);
    zovn_ended(vswitch, at, reference, whole ? reason_of(result) : ZOVN_MALFORMED);
    return true;
}

/* Time that frames waited for a lane which took none, up to now. */
static void block(struct zovn_member *member, struct zovn_lane *lane, uint64_t now_ns) {
    if (!lane->blocked) {
        lane->blocked = true;
        lane->blocked_since_ns = lane->blocked_until_ns = now_ns;
    }
    uint64_t lasts_ns = now_ns - lane->blocked_since_ns;
    member->counters.blocked_ns += now_ns - lane->blocked_until_ns;
    lane->blocked_until_ns = now_ns;
    if (lasts_ns > member->counters.longest_ns)
        member->counters.longest_ns = lasts_ns;
}

static void unblock(struct zovn_member *member, struct zovn_lane *lane, uint64_t now_ns) {
    if (lane->blocked)
        block(member, lane, now_ns);
    lane->blocked = false;
}

/* A port that waits for its own rate is not blocked: its peer would take frames. */
static bool may_send(const struct zovn_member *member, uint64_t now_ns) {
    return zovn_pace_due(&member->pace, now_ns) == now_ns;
}

/* The classes of a lane, as bits. */
static uint32_t classes_of(const struct zovn_member *member, uint32_t lane) {
    return member->port->class_room ? 1u << lane : ~0u;
}

static void note(struct zovn_member *member, uint32_t served, uint32_t full, uint64_t now_ns) {
    for (uint32_t i = 0; i < zovn_lanes(member); i++) {
        struct zovn_lane *lane = &member->lanes[i];
        if (served >> i & 1 || (!(full >> i & 1) && !lane->stalled))
            unblock(member, lane, now_ns);
        if (full >> i & 1)
            block(member, lane, now_ns);
    }
}

/* The lanes with frames that are closed, as bits: the round may have ended before it came to them. */
static uint32_t closed_lanes(const struct zovn_member *member) {
    uint32_t closed = 0;
    for (uint32_t i = 0; i < zovn_lanes(member); i++)
        closed |= (uint32_t)(member->classes >> i & 1 && !is_open(member, i)) << i;
    return closed;
}

/* A frame found no room: none at all, which ends the round where it is; or its lane is closed. Return
 * the lanes that are blocked by that, as bits. Those that are open only wait for their turn while
 * others of them use the room that all share. */
static uint32_t close_lanes(const struct zovn_member *member, uint32_t lane, uint32_t served,
                            uint32_t *open) {
    bool own = member->port->class_room;
    if (own && member->port->calls->room(member->port)) {
        *open &= ~(1u << lane);
        return 1u << lane;
    }
    *open = 0;
    if (!own)
        return 1u << lane;
    return served ? 0 : member->classes;
}

uint32_t zovn_serve(struct zovn_switch *vswitch, uint32_t destination, uint32_t most) {
    struct zovn_member *member = vswitch->members[destination];
    uint32_t moved = 0, open = ~0u, served = 0, full = 0; /* classes; lanes */
    uint64_t now_ns = zovn_now(vswitch, destination);
    while (member->classes & open && moved < most && may_send(member, now_ns)) {
        struct zovn_place at;
        uint64_t out = member->counters.out;
        zovn_queue_turn(vswitch, destination, member->classes & open, &at);
        uint32_t lane = zovn_lane_of(member, at.class);
        uint32_t count = zovn_plain_move(vswitch, &at, most - moved);
        if (!count)
            count = move(vswitch, &at);
        if (count) {
            moved += count;
            served |= (uint32_t)(member->counters.out != out) << lane;
        } else {
            full |= close_lanes(member, lane, served, &open);
        }
    }
    member->took = served;
    note(member, served, full | closed_lanes(member), now_ns);
    return moved;
}

/* An open lane goes on with its first frame when there is room, or others use up what there is. */
static bool goes_on(const struct zovn_member *member, uint32_t lane) {
    return has_room(member, lane) || (member->took && is_open(member, lane));
}

static void watch(struct zovn_switch *vswitch, uint32_t destination, uint32_t number) {
    struct zovn_member *member = vswitch->members[destination];
    struct zovn_lane *lane = &member->lanes[number];
    uint64_t now_ns = zovn_now(vswitch, destination);
    if (lane->stalled) {
        block(member, lane, now_ns);
        lane->stalled = !goes_on(member, number);
        if (!lane->stalled)
            unblock(member, lane, now_ns);
    } else if (now_ns - lane->blocked_since_ns >= vswitch->settings.stall_ns) {
        lane->stalled = true;
        member->counters.stalls++;
        zovn_drop_to(vswitch, destination, classes_of(member, number), ZOVN_STALLED);
    }
}

/* A port that frames wait for and that takes none for long must not hold its senders up. */
void zovn_watch(struct zovn_switch *vswitch, uint32_t destination) {
    for (uint32_t i = 0; i < zovn_lanes(vswitch->members[destination]); i++)
        if (vswitch->members[destination]->lanes[i].blocked)
            watch(vswitch, destination, i);
}
