/* The step: new frames of all ports, then all destinations, then all peers. */
#include "switch/step.h"

#include <string.h>

#include "switch/classify.h"
#include "switch/outcome.h"
#include "switch/serve.h"

void zovn_stop(struct zovn_switch *vswitch, uint32_t port, enum zovn_reason reason) {
    struct zovn_member *member = vswitch->members[port];
    member->running = false;
    zovn_drop_from(vswitch, port, reason);
    zovn_drop_to(vswitch, port, ~0u, reason);
    zovn_addresses_forget(&vswitch->addresses, port);
    memset(member->lanes, 0, sizeof member->lanes);
}

void zovn_publish(struct zovn_switch *vswitch) {
    for (uint32_t i = 0; i < vswitch->end; i++)
        if (vswitch->members[i] && vswitch->members[i]->port->show)
            vswitch->members[i]->port->show(vswitch->members[i]->port);
    for (uint32_t i = 0; i < vswitch->end; i++)
        if (vswitch->members[i])
            vswitch->members[i]->port->calls->publish(vswitch->members[i]->port);
}

/* To one destination in a step, and to all that are costly. All others wait meanwhile, and a frame may
 * have 65,000 segments. */
enum { MOST_MOVED = 4 * ZOVN_BATCH, MOST_COSTLY = 2 * MOST_MOVED };

static bool runs(const struct zovn_switch *vswitch, uint32_t port) {
    return vswitch->members[port] && vswitch->members[port]->running;
}

static void stop_if_faulty(struct zovn_switch *vswitch, uint32_t port) {
    if (vswitch->members[port]->port->fault)
        zovn_stop(vswitch, port, ZOVN_STOPPED);
}

/* Return a number below another one, by xorshift64* (Vigna 2016). */
static uint32_t draw(uint64_t *state, uint32_t below) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * UINT64_C(0x2545f4914f6cdd1d) >> 32) * below >> 32);
}

static void shuffle(struct zovn_switch *vswitch) {
    for (uint32_t i = vswitch->end; i > 1; i--) {
        uint32_t other = draw(&vswitch->random, i);
        uint8_t port = vswitch->order[i - 1];
        vswitch->order[i - 1] = vswitch->order[other];
        vswitch->order[other] = port;
    }
}

/* In a lossy class the first port may take all the room that there is. A random order gives all the
 * same chance, whichever others send and whenever there is room; it is used backwards as well, so
 * that chances even out soon. */
static void set_order(struct zovn_switch *vswitch) {
    if (!vswitch->lossy)
        return;
    vswitch->backwards = !vswitch->backwards;
    if (!vswitch->backwards)
        shuffle(vswitch);
}

static uint32_t classify_all(struct zovn_switch *vswitch) {
    uint32_t moved = 0, end = vswitch->end;
    set_order(vswitch);
    for (uint32_t i = 0; i < end; i++) {
        uint32_t port = vswitch->order[vswitch->backwards ? end - 1 - i : i];
        if (!runs(vswitch, port))
            continue;
        moved += zovn_classify(vswitch, port);
        stop_if_faulty(vswitch, port);
    }
    return moved;
}

/* `left` is what may still go to costly ports. The next step begins with the port that used it up. */
static uint32_t serve(struct zovn_switch *vswitch, uint32_t port, uint32_t *left) {
    if (!vswitch->members[port]->port->costly)
        return zovn_serve(vswitch, port, MOST_MOVED);
    uint32_t moved = zovn_serve(vswitch, port, *left < MOST_MOVED ? *left : MOST_MOVED);
    if (moved && moved == *left)
        vswitch->first_served = port;
    *left -= moved;
    return moved;
}

static uint32_t serve_all(struct zovn_switch *vswitch) {
    uint32_t moved = 0, left = MOST_COSTLY, end = vswitch->end, first = vswitch->first_served;
    for (uint32_t i = 0; i < end; i++) {
        uint32_t port = first + i < end ? first + i : first + i - end;
        if (!runs(vswitch, port))
            continue;
        moved += serve(vswitch, port, &left);
        zovn_watch(vswitch, port);
        stop_if_faulty(vswitch, port);
    }
    return moved;
}

uint32_t zovn_step(struct zovn_switch *vswitch, uint64_t now_ns) {
    vswitch->now_ns = now_ns;
    uint32_t moved = classify_all(vswitch);
    moved += serve_all(vswitch);
    zovn_publish(vswitch);
    zovn_addresses_sweep(&vswitch->addresses, now_ns);
    return moved;
}
