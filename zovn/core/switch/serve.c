/* Moves frames to a destination: copied once, from where they lie. */
#include "switch/serve.h"

#include "switch/edit.h"
#include "switch/offload.h"
#include "switch/outcome.h"
#include "switch/parking.h"

/* Find a frame again. A sender that changed its length meanwhile does not get it delivered. */
static bool fetch(const struct zovn_member *source, uint32_t reference,
                  const struct zovn_facts *facts, struct zovn_frame *frame) {
    struct zovn_parked *parked = zovn_parking_of(source, reference);
    if (parked) {
        zovn_frame_begin(frame);
        zovn_frame_append(frame, parked->bytes, facts->length);
    } else if (source->port->calls->frame(source->port, (uint16_t)reference, frame) !=
                   ZOVN_FRAME_OK ||
               frame->length != facts->length) {
        return false;
    }
    frame->offload = facts->offload;
    return true;
}

/* As the frame's sender left it, or finished by the switch. */
static enum zovn_put_result put(struct zovn_switch *vswitch, const struct zovn_place *at,
                                const struct zovn_facts *facts, struct zovn_frame *frame) {
    struct zovn_member *member = vswitch->members[at->destination];
    uint64_t threshold = vswitch->settings.classes[at->class].mark_bytes;
    bool mark = threshold && member->queues[at->class].bytes > threshold;
    struct zovn_head head;
    struct zovn_finished finished;
    if (facts->offload.flags) {
        if (!member->port->calls->room(member->port))
            return ZOVN_PUT_NO_ROOM;
        facts = zovn_queue_finish(vswitch, at, &finished, frame);
    }
    bool marked = zovn_edit(frame, &head, facts, mark, &member->settings);
    uint32_t length = frame->length; /* the port puts its own header before it */
    enum zovn_put_result result = member->port->calls->put(member->port, frame);
    if (result == ZOVN_PUT_DONE) {
        member->counters.out++;
        member->counters.out_bytes += length;
        zovn_pace_sent(&member->pace, vswitch->now_ns, length);
        member->counters.marked += marked;
        member->counters.finished += facts == &finished.facts;
    }
    return result;
}

static enum zovn_reason reason_of(enum zovn_put_result result) {
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
    if (result == ZOVN_PUT_DONE)
        zovn_delivered(source, reference);
    else
        zovn_dropped(source, reference, whole ? reason_of(result) : ZOVN_MALFORMED);
    return true;
}

/* Time that frames waited for a destination which took none, up to now. */
static void block(struct zovn_member *member, uint64_t now_ns) {
    if (!member->blocked) {
        member->blocked = true;
        member->blocked_since_ns = member->blocked_until_ns = now_ns;
    }
    uint64_t lasts_ns = now_ns - member->blocked_since_ns;
    member->counters.blocked_ns += now_ns - member->blocked_until_ns;
    member->blocked_until_ns = now_ns;
    if (lasts_ns > member->counters.longest_ns)
        member->counters.longest_ns = lasts_ns;
}

static void unblock(struct zovn_member *member, uint64_t now_ns) {
    if (member->blocked)
        block(member, now_ns);
    member->blocked = false;
}

/* A port that waits for its own rate is not blocked: its peer would take frames. */
static bool may_send(const struct zovn_member *member, uint64_t now_ns) {
    return zovn_pace_due(&member->pace, now_ns) == now_ns;
}

uint32_t zovn_serve(struct zovn_switch *vswitch, uint32_t destination) {
    struct zovn_member *member = vswitch->members[destination];
    uint64_t out = member->counters.out;
    uint32_t moved = 0;
    bool room = true;
    while (room && member->classes && may_send(member, vswitch->now_ns)) {
        struct zovn_place at;
        zovn_queue_turn(vswitch, destination, &at);
        room = move(vswitch, &at);
        moved += room;
    }
    if (member->counters.out != out || (room && !member->stalled))
        unblock(member, vswitch->now_ns);
    if (!room)
        block(member, vswitch->now_ns);
    return moved;
}

/* A port that frames wait for and that takes none for long must not hold its senders up. */
void zovn_watch(struct zovn_switch *vswitch, uint32_t destination) {
    struct zovn_member *member = vswitch->members[destination];
    uint64_t now_ns = vswitch->now_ns;
    if (!member->blocked)
        return;
    if (member->stalled) {
        block(member, now_ns);
        member->stalled = !member->port->calls->room(member->port);
        if (!member->stalled)
            unblock(member, now_ns);
    } else if (now_ns - member->blocked_since_ns >= vswitch->settings.stall_ns) {
        member->stalled = true;
        member->counters.stalls++;
        zovn_drop_to(vswitch, destination, ZOVN_STALLED);
    }
}
