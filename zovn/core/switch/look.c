/* What is known of ports and addresses. */
#include "switch/state.h"
#include "switch/switch.h"

static struct zovn_member *member_at(const struct zovn_switch *vswitch, uint32_t port) {
    return port < ZOVN_MOST_PORTS ? vswitch->members[port] : NULL;
}

int32_t zovn_switch_part(const struct zovn_switch *vswitch, uint32_t port) {
    const struct zovn_member *member = member_at(vswitch, port);
    return member ? (int32_t)member->part : -1;
}

static uint64_t clock_of(const struct zovn_switch *vswitch) {
    return atomic_load_explicit(&vswitch->clock_ns, memory_order_relaxed);
}

int32_t zovn_switch_find(struct zovn_switch *vswitch, uint16_t vlan, const uint8_t *address) {
    struct zovn_recall found;
    uint64_t key = zovn_address_key(vlan, address);
    bool known = zovn_addresses_find(&vswitch->addresses, key, clock_of(vswitch), &found);
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
        if (zovn_addresses_live(addresses, *at, clock_of(vswitch)))
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
