/* The step: new frames of all ports, then all destinations, then all peers. */
#include "switch/step.h"

#include <string.h>

#include "switch/classify.h"
#include "switch/outcome.h"
#include "switch/passing.h"
#include "switch/serve.h"

void zovn_stop(struct zovn_switch *vswitch, uint32_t port, enum zovn_reason reason) {
    struct zovn_member *member = vswitch->members[port];
    zovn_take_all(vswitch);
    member->running = false;
    zovn_drop_from(vswitch, port, reason);
    zovn_drop_to(vswitch, port, ~0u, reason);
    zovn_take_all(vswitch);
    zovn_addresses_forget(&vswitch->addresses, port);
    memset(member->lanes, 0, sizeof member->lanes);
}

static bool is_in(const struct zovn_member *member, uint32_t parts) {
    return member && parts >> member->part & 1;
}

static void show(struct zovn_switch *vswitch, uint32_t parts) {
    for (uint32_t i = 0; i < vswitch->end; i++)
        if (is_in(vswitch->members[i], parts) && vswitch->members[i]->port->show)
            vswitch->members[i]->port->show(vswitch->members[i]->port);
}

static void give_back(struct zovn_switch *vswitch, uint32_t parts) {
    for (uint32_t i = 0; i < vswitch->end; i++)
        if (is_in(vswitch->members[i], parts))
            vswitch->members[i]->port->calls->publish(vswitch->members[i]->port);
}

/* To one destination in a step, and to all that are costly. All others wait meanwhile, and a frame may
 * have 65,000 segments. */
enum { MOST_MOVED = 4 * ZOVN_BATCH, MOST_COSTLY = 2 * MOST_MOVED };

void zovn_publish_all(struct zovn_switch *vswitch) {
    show(vswitch, ~0u);
    give_back(vswitch, ~0u);
}

/* A port that waits to be stopped does nothing meanwhile. */
static bool runs(const struct zovn_switch *vswitch, uint32_t port, uint32_t part) {
    const struct zovn_member *member = vswitch->members[port];
    return is_in(member, 1u << part) && member->running &&
           !(member->waits_alone && member->port->fault);
}

static void stop_if_faulty(struct zovn_switch *vswitch, uint32_t port) {
    if (vswitch->members[port]->port->fault && zovn_alone(vswitch, port))
        zovn_stop(vswitch, port, ZOVN_STOPPED);
}

/* Return a number below another one, by xorshift64* (Vigna 2016). */
static uint32_t draw(uint64_t *state, uint32_t below) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * UINT64_C(0x2545f4914f6cdd1d) >> 32) * below >> 32);
}

static void shuffle(struct zovn_part *part, uint32_t end) {
    for (uint32_t i = end; i > 1; i--) {
        uint32_t other = draw(&part->random, i);
        uint8_t port = part->order[i - 1];
        part->order[i - 1] = part->order[other];
        part->order[other] = port;
    }
}

/* In a lossy class the first port may take all the room that there is. A random order gives all the
 * same chance, whichever others send and whenever there is room; it is used backwards as well, so
 * that chances even out soon. */
static void set_order(const struct zovn_switch *vswitch, struct zovn_part *part) {
    if (!vswitch->lossy)
        return;
    part->backwards = !part->backwards;
    if (!part->backwards)
        shuffle(part, vswitch->end);
}

static uint32_t classify(struct zovn_switch *vswitch, uint32_t port) {
    uint32_t moved = zovn_take_ends(vswitch, port);
    moved += zovn_classify(vswitch, port);
    zovn_show_passed(vswitch, port);
    stop_if_faulty(vswitch, port);
    return moved;
}

/* Ports of other parts are classified there: what they pass comes in their turn. */
static uint32_t classify_all(struct zovn_switch *vswitch, uint32_t number) {
    struct zovn_part *part = &vswitch->parts[number];
    uint32_t moved = 0, end = vswitch->end;
    set_order(vswitch, part);
    for (uint32_t i = 0; i < end; i++) {
        uint32_t port = part->order[part->backwards ? end - 1 - i : i];
        if (runs(vswitch, port, number))
            moved += classify(vswitch, port);
        else if (is_in(vswitch->members[port], ~(1u << number)))
            moved += zovn_take_passed(vswitch, port, number);
    }
    return moved;
}

/* `left` is what may still go to costly ports. The next step begins with the port that used it up. */
static uint32_t serve(struct zovn_switch *vswitch, uint32_t port, uint32_t *left) {
    if (!vswitch->members[port]->port->costly)
        return zovn_serve(vswitch, port, MOST_MOVED);
    uint32_t moved = zovn_serve(vswitch, port, *left < MOST_MOVED ? *left : MOST_MOVED);
    if (moved && moved == *left)
        vswitch->parts[vswitch->members[port]->part].first_served = port;
    *left -= moved;
    return moved;
}

static uint32_t serve_all(struct zovn_switch *vswitch, uint32_t number) {
    uint32_t moved = 0, left = MOST_COSTLY, end = vswitch->end;
    uint32_t first = vswitch->parts[number].first_served;
    for (uint32_t i = 0; i < end; i++) {
        uint32_t port = first + i < end ? first + i : first + i - end;
        if (!runs(vswitch, port, number))
            continue;
        moved += serve(vswitch, port, &left);
        zovn_watch(vswitch, port);
        stop_if_faulty(vswitch, port);
    }
    return moved;
}

static void begin(struct zovn_switch *vswitch, uint32_t number, uint64_t now_ns) {
    struct zovn_part *part = &vswitch->parts[number];
    if (number == 0)
        atomic_store_explicit(&vswitch->clock_ns, now_ns, memory_order_relaxed);
    part->now_ns = now_ns;
    part->clock_ns = atomic_load_explicit(&vswitch->clock_ns, memory_order_relaxed);
    part->shown = 0;
}

uint32_t zovn_step(struct zovn_switch *vswitch, uint32_t number, uint64_t now_ns) {
    begin(vswitch, number, now_ns);
    uint32_t moved = classify_all(vswitch, number);
    moved += serve_all(vswitch, number);
    show(vswitch, 1u << number);
    zovn_show_ends(vswitch, number);
    give_back(vswitch, 1u << number);
    if (number == 0)
        zovn_addresses_sweep(&vswitch->addresses, now_ns);
    return moved;
}
