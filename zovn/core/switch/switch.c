/* Ports that come and go, and steps. */
#include "switch/switch.h"

#include <stdlib.h>
#include <string.h>

#include "switch/flood.h"
#include "switch/parking.h"
#include "switch/passing.h"
#include "switch/step.h"

enum { MOST_HEADS = 32768 };

static void read_classes(struct zovn_switch *vswitch) {
    for (uint32_t i = 0; i < ZOVN_CLASSES; i++) {
        vswitch->strict |= (uint32_t)!vswitch->settings.classes[i].weight << i;
        vswitch->lossy |= vswitch->settings.classes[i].limit_bytes > 0;
    }
}

static void begin_part(struct zovn_switch *vswitch, uint32_t number) {
    struct zovn_part *part = &vswitch->parts[number];
    part->random = ((vswitch->settings.seed + number) ^ UINT64_C(0x9e3779b97f4a7c15)) | 1;
    for (uint32_t i = 0; i < ZOVN_MOST_PORTS; i++)
        part->order[i] = (uint8_t)i;
}

struct zovn_switch *zovn_switch_new(const struct zovn_settings *settings, const char **problem) {
    *problem = zovn_settings_problem(settings);
    struct zovn_switch *vswitch =
        *problem ? NULL : aligned_alloc(_Alignof(struct zovn_switch), sizeof *vswitch);
    if (!vswitch)
        return NULL;
    *vswitch = (struct zovn_switch){.settings = *settings};
    read_classes(vswitch);
    for (uint32_t i = 0; i < settings->threads; i++)
        begin_part(vswitch, i);
    if (zovn_addresses_init(&vswitch->addresses, settings))
        return vswitch;
    *problem = "switch: no memory for it";
    zovn_switch_free(vswitch);
    return NULL;
}

void zovn_switch_free(struct zovn_switch *vswitch) {
    for (uint32_t i = 0; i < ZOVN_MOST_PORTS; i++)
        zovn_switch_remove(vswitch, i, NULL);
    zovn_addresses_free(&vswitch->addresses);
    free(vswitch);
}

static struct zovn_member *member_at(const struct zovn_switch *vswitch, uint32_t port) {
    return port < ZOVN_MOST_PORTS ? vswitch->members[port] : NULL;
}

static void free_member(const struct zovn_switch *vswitch, struct zovn_member *member) {
    zovn_parking_free(member, vswitch->settings.parked);
    zovn_channels_free(member->passed, vswitch->settings.threads);
    zovn_channels_free(member->ends, vswitch->settings.threads);
    free(member->slots);
    free(member);
}

/* A source has a reference for each head, and for each copy of a frame that is parked. */
static bool make_channels(const struct zovn_switch *vswitch, struct zovn_member *member) {
    const uint32_t threads = vswitch->settings.threads;
    uint32_t references = member->port->heads + vswitch->settings.parked * ZOVN_MOST_PORTS;
    if (threads == 1)
        return true;
    member->passed = zovn_channels_new(threads, references);
    member->ends = zovn_channels_new(threads, references);
    return member->passed && member->ends;
}

/* Return the part with the fewest ports. */
static uint32_t idlest(const struct zovn_switch *vswitch) {
    uint32_t counts[ZOVN_MOST_THREADS] = {0}, part = 0;
    for (uint32_t i = 0; i < vswitch->end; i++)
        if (vswitch->members[i])
            counts[vswitch->members[i]->part]++;
    for (uint32_t i = 1; i < vswitch->settings.threads; i++)
        part = counts[i] < counts[part] ? i : part;
    return part;
}

static struct zovn_slot *new_slots(uint32_t heads) {
    struct zovn_slot *slots = aligned_alloc(_Alignof(struct zovn_slot), heads * sizeof *slots);
    if (slots)
        memset(slots, 0, heads * sizeof *slots);
    return slots;
}

static struct zovn_member *new_member(const struct zovn_switch *vswitch, struct zovn_port *port,
                                      const struct zovn_port_settings *settings) {
    struct zovn_member *member = aligned_alloc(_Alignof(struct zovn_member), sizeof *member);
    if (!member)
        return NULL;
    *member = (struct zovn_member){
        .port = port,
        .slots = new_slots(port->heads),
        .part = idlest(vswitch),
        .running = true,
        .settings = *settings,
        .pace.rate_bps = settings->rate_bps,
    };
    if (zovn_parking_init(member, vswitch->settings.parked) && member->slots &&
        make_channels(vswitch, member))
        return member;
    free_member(vswitch, member);
    return NULL;
}

int32_t zovn_switch_add(struct zovn_switch *vswitch, struct zovn_port *port,
                        const struct zovn_port_settings *settings, const char **problem) {
    uint32_t place = 0;
    while (place < ZOVN_MOST_PORTS && vswitch->members[place])
        place++;
    *problem = zovn_port_problem(settings);
    if (!*problem && (!port->heads || port->heads > MOST_HEADS))
        *problem = "port: its ring has 1 to 32768 entries";
    if (!*problem && place == ZOVN_MOST_PORTS)
        *problem = "ports: there are 72 already";
    if (*problem)
        return -1;
    vswitch->members[place] = new_member(vswitch, port, settings);
    if (!vswitch->members[place]) {
        *problem = "port: no memory for it";
        return -1;
    }
    vswitch->end = place < vswitch->end ? vswitch->end : place + 1;
    return (int32_t)place;
}

bool zovn_switch_drain(struct zovn_switch *vswitch, uint32_t port) {
    struct zovn_member *member = member_at(vswitch, port);
    if (!member || !member->running)
        return true;
    member->draining = true;
    return member->heads_at == member->heads_end && !member->counters.held &&
           !member->counters.parked;
}

void zovn_switch_remove(struct zovn_switch *vswitch, uint32_t port, struct zovn_counters *last) {
    struct zovn_member *member = member_at(vswitch, port);
    if (!member)
        return;
    zovn_stop(vswitch, port, ZOVN_REMOVED);
    zovn_publish_all(vswitch);
    if (last)
        zovn_switch_counters(vswitch, port, last);
    vswitch->members[port] = NULL;
    member->port->calls->free(member->port);
    free_member(vswitch, member);
}

uint32_t zovn_switch_step(struct zovn_switch *vswitch, uint64_t now_ns) {
    return zovn_step(vswitch, 0, now_ns);
}

uint32_t zovn_switch_step_part(struct zovn_switch *vswitch, uint32_t part, uint64_t now_ns,
                               uint32_t *shown) {
    uint32_t moved = zovn_step(vswitch, part, now_ns);
    *shown = vswitch->parts[part].shown;
    return moved;
}

bool zovn_switch_wants_alone(const struct zovn_switch *vswitch) {
    return atomic_load_explicit(&vswitch->wants_alone, memory_order_acquire);
}

static void do_alone(struct zovn_switch *vswitch, uint32_t port) {
    vswitch->members[port]->waits_alone = false;
    if (vswitch->members[port]->port->fault)
        zovn_stop(vswitch, port, ZOVN_STOPPED);
    else
        zovn_make_room(vswitch, port);
}

void zovn_switch_settle(struct zovn_switch *vswitch) {
    atomic_store_explicit(&vswitch->wants_alone, false, memory_order_relaxed);
    vswitch->alone = true;
    zovn_take_all(vswitch);
    for (uint32_t i = 0; i < vswitch->end; i++)
        if (vswitch->members[i] && vswitch->members[i]->waits_alone)
            do_alone(vswitch, i);
    zovn_take_all(vswitch);
    vswitch->alone = false;
}

uint64_t zovn_switch_due(const struct zovn_switch *vswitch, uint32_t part) {
    uint64_t due_ns = UINT64_MAX, now_ns = vswitch->parts[part].now_ns;
    for (uint32_t i = 0; i < vswitch->end; i++) {
        const struct zovn_member *member = vswitch->members[i];
        if (!member || member->part != part || !member->classes)
            continue;
        uint64_t own_ns = zovn_pace_due(&member->pace, now_ns);
        if (own_ns > now_ns && own_ns < due_ns)
            due_ns = own_ns;
    }
    return due_ns;
}

bool zovn_switch_fix(struct zovn_switch *vswitch, uint32_t port, uint16_t vlan,
                     const uint8_t *address) {
    return member_at(vswitch, port) && vlan && vlan <= ZOVN_MOST_VLAN &&
           zovn_addresses_fix(&vswitch->addresses, zovn_address_key(vlan, address), port);
}
