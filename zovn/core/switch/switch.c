/* Ports that come and go, and what is known of them. */
#include "switch/switch.h"

#include <stdlib.h>

#include "switch/parking.h"
#include "switch/step.h"

enum { MOST_HEADS = 32768 };

static void read_classes(struct zovn_switch *vswitch) {
    for (uint32_t i = 0; i < ZOVN_CLASSES; i++) {
        vswitch->strict |= (uint32_t)!vswitch->settings.classes[i].weight << i;
        vswitch->lossy |= vswitch->settings.classes[i].limit_bytes > 0;
    }
}

static void begin_order(struct zovn_switch *vswitch) {
    vswitch->random = (vswitch->settings.seed ^ UINT64_C(0x9e3779b97f4a7c15)) | 1;
    for (uint32_t i = 0; i < ZOVN_MOST_PORTS; i++)
        vswitch->order[i] = (uint8_t)i;
}

struct zovn_switch *zovn_switch_new(const struct zovn_settings *settings, const char **problem) {
    *problem = zovn_settings_problem(settings);
    struct zovn_switch *vswitch =
        *problem ? NULL : aligned_alloc(_Alignof(struct zovn_switch), sizeof *vswitch);
    if (!vswitch)
        return NULL;
    *vswitch = (struct zovn_switch){.settings = *settings};
    read_classes(vswitch);
    begin_order(vswitch);
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
    free(member->slots);
    free(member);
}

static struct zovn_member *new_member(const struct zovn_switch *vswitch, struct zovn_port *port,
                                      const struct zovn_port_settings *settings) {
    struct zovn_member *member = calloc(1, sizeof *member);
    if (!member)
        return NULL;
    member->port = port;
    member->settings = *settings;
    member->running = true;
    member->pace.rate_bps = settings->rate_bps;
    member->slots = calloc(port->heads, sizeof *member->slots);
    if (zovn_parking_init(member, vswitch->settings.parked) && member->slots)
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
    zovn_publish(vswitch);
    if (last)
        zovn_switch_counters(vswitch, port, last);
    vswitch->members[port] = NULL;
    member->port->calls->free(member->port);
    free_member(vswitch, member);
}

uint32_t zovn_switch_step(struct zovn_switch *vswitch, uint64_t now_ns) {
    return zovn_step(vswitch, now_ns);
}

uint64_t zovn_switch_due(const struct zovn_switch *vswitch) {
    uint64_t due_ns = UINT64_MAX;
    for (uint32_t i = 0; i < vswitch->end; i++) {
        const struct zovn_member *member = vswitch->members[i];
        if (!member || !member->classes)
            continue;
        uint64_t own_ns = zovn_pace_due(&member->pace, vswitch->now_ns);
        if (own_ns > vswitch->now_ns && own_ns < due_ns)
            due_ns = own_ns;
    }
    return due_ns;
}

bool zovn_switch_fix(struct zovn_switch *vswitch, uint32_t port, uint16_t vlan,
                     const uint8_t *address) {
    return member_at(vswitch, port) && vlan && vlan <= ZOVN_MOST_VLAN &&
           zovn_addresses_fix(&vswitch->addresses, zovn_address_key(vlan, address), port);
}

int32_t zovn_switch_find(struct zovn_switch *vswitch, uint16_t vlan, const uint8_t *address) {
    struct zovn_recall found;
    uint64_t key = zovn_address_key(vlan, address);
    bool known = zovn_addresses_find(&vswitch->addresses, key, vswitch->now_ns, &found);
    return known ? (int32_t)found.port : -1;
}

enum { MOST_LOOKED = 4096 };

static struct zovn_known known_of(const struct zovn_address *entry) {
    struct zovn_known known = {
        .vlan = (uint16_t)(entry->key >> 48), .port = entry->port, .fixed = entry->fixed};
    for (uint32_t i = 0; i < sizeof known.address; i++)
        known.address[i] = (uint8_t)(entry->key >> (40 - 8 * i));
    return known;
}

uint32_t zovn_switch_known(const struct zovn_switch *vswitch, uint32_t *at,
                           struct zovn_known *known, uint32_t room) {
    const struct zovn_addresses *addresses = &vswitch->addresses;
    uint32_t found = 0, left = *at < addresses->total ? addresses->total - *at : 0;
    uint32_t end = *at + (left < MOST_LOOKED ? left : MOST_LOOKED);
    for (; *at < end && found < room; ++*at)
        if (zovn_addresses_live(addresses, *at, vswitch->now_ns))
            known[found++] = known_of(&addresses->all[*at]);
    if (*at >= addresses->total)
        *at = 0;
    return found;
}

static void add_line(const struct zovn_port *port, struct zovn_counters *counters) {
    struct zovn_port_counts counts = {0};
    if (port->count)
        port->count(port, &counts);
    counters->beyond = counts.beyond;
    counters->unsound = counts.unsound;
    counters->overruns = counts.overruns;
    counters->pauses_sent = counts.pauses_sent;
    counters->pauses = counts.pauses;
    counters->paused_ns = counts.paused_ns;
}

bool zovn_switch_counters(const struct zovn_switch *vswitch, uint32_t port,
                          struct zovn_counters *counters) {
    const struct zovn_member *member = member_at(vswitch, port);
    if (!member)
        return false;
    *counters = member->counters;
    add_line(member->port, counters);
    return true;
}

enum zovn_fault zovn_switch_fault(const struct zovn_switch *vswitch, uint32_t port) {
    const struct zovn_member *member = member_at(vswitch, port);
    return member ? member->port->fault : ZOVN_SOUND;
}

bool zovn_switch_stalled(const struct zovn_switch *vswitch, uint32_t port) {
    const struct zovn_member *member = member_at(vswitch, port);
    for (uint32_t i = 0; member && i < ZOVN_CLASSES; i++)
        if (member->lanes[i].stalled)
            return true;
    return false;
}
