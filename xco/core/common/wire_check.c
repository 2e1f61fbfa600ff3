// Rules of messages in both directions: ranges, times, destinations named once.
#include "common/wire_check.h"

#include <string.h>

#define MAC_BYTES 6
#define VLAN_MOST 4094u

_Static_assert(offsetof(struct xco_waiting, destination) == 0 &&
                   offsetof(struct xco_permit, destination) == 0,
               "a destination comes first");

static bool from_controller(uint8_t type) {
    return type == XCO_WELCOME || type == XCO_DIRECTIVE || type == XCO_MAP;
}

static bool header_is_sound(const struct xco_header *header) {
    if (header->type < XCO_HELLO || header->type > XCO_PORT) {
        return false;
    }
    if (header->sent_ns >= XCO_TIME_MAX) {
        return false;
    }
    if (from_controller(header->type)) {
        return header->host == XCO_CONTROLLER;
    }
    return header->host < XCO_HOSTS_MAX || (header->type == XCO_PORT && header->host == XCO_AGENT);
}

static bool welcome_is_sound(const struct xco_welcome *welcome) {
    return welcome->to <= XCO_AGENT && welcome->status <= XCO_HELLO_FIRST &&
           welcome->strategy <= XCO_GCC &&
           (welcome->slice_ns | welcome->silence_ns | welcome->echo_sent_ns |
            welcome->echo_received_ns) < XCO_TIME_MAX;
}

// Notes a destination; false: it is not a host, or was noted before.
static bool note(uint64_t *seen, uint16_t destination) {
    const uint64_t bit = UINT64_C(1) << (destination % 64);
    if (destination >= XCO_HOSTS_MAX || (seen[destination / 64] & bit) != 0) {
        return false;
    }
    seen[destination / 64] |= bit;
    return true;
}

// Whether the destinations of `count` entries of `stride` bytes are hosts, each named once. All
// bits are 0 again afterwards, which costs less than clearing 8 KiB for each message.
static bool destinations_are_sound(const void *entries, size_t stride, size_t count) {
    static _Thread_local uint64_t seen[(XCO_CONTROLLER + 1) / 64];
    uint16_t destinations[XCO_ENTRIES_MAX];
    size_t noted = 0;
    for (; noted < count; noted++) {
        memcpy(&destinations[noted], (const char *)entries + noted * stride, sizeof *destinations);
        if (!note(seen, destinations[noted])) {
            break;
        }
    }
    for (size_t i = 0; i < noted; i++) {
        seen[destinations[i] / 64] = 0;
    }
    return noted == count;
}

static bool report_is_sound(const struct xco_report *report) {
    if (report->count > XCO_ENTRIES_MAX ||
        (report->flags & ~(XCO_FLAG_FELL_BACK | XCO_FLAG_MORE)) != 0 ||
        report->free_ns >= XCO_TIME_MAX) {
        return false;
    }
    return destinations_are_sound(report->entries, sizeof report->entries[0], report->count);
}

static bool directive_is_sound(const struct xco_directive *directive) {
    const bool endless = directive->end_ns == 0;
    if (directive->to >= XCO_HOSTS_MAX || directive->mode > XCO_OPEN ||
        directive->count > XCO_ENTRIES_MAX ||
        (!endless && directive->end_ns < directive->start_ns) ||
        (endless && directive->mode == XCO_SLICE)) {
        return false;
    }
    if ((directive->start_ns | directive->end_ns | directive->echo_sent_ns |
         directive->echo_received_ns) >= XCO_TIME_MAX) {
        return false;
    }
    return destinations_are_sound(directive->entries, sizeof directive->entries[0],
                                  directive->count);
}

// An address of a single station, with its unused bytes 0.
static bool place_is_sound(const struct xco_place *place) {
    static const uint8_t nothing[sizeof place->address];
    const bool mac = place->kind == XCO_PLACE_MAC;
    return (mac || place->kind == XCO_PLACE_IP) && !(mac && (place->address[0] & 1) != 0) &&
           (!mac || memcmp(place->address + MAC_BYTES, nothing, sizeof nothing - MAC_BYTES) == 0) &&
           (place->vlan <= VLAN_MOST || place->vlan == XCO_ANY_VLAN) && place->reserved == 0;
}

// A host of which all addresses are known is named by its own number.
static bool host_is_sound(const struct xco_located *entry) {
    const struct xco_place place = xco_place_of_host(entry->host);
    return entry->host < XCO_HOSTS_MAX && memcmp(&entry->place, &place, sizeof place) == 0;
}

static bool located_is_sound(const struct xco_header *header, const struct xco_located *entry) {
    const bool down = header->type == XCO_MAP;
    if (down && entry->place.kind == XCO_PLACE_HOST) {
        return host_is_sound(entry);
    }
    return place_is_sound(&entry->place) &&
           (entry->host == XCO_NOWHERE ||
            (down ? entry->host < XCO_HOSTS_MAX : entry->host == header->host));
}

static bool map_is_sound(const struct xco_header *header, const struct xco_map *map) {
    const bool down = header->type == XCO_MAP;
    bool sound = (down ? map->to < XCO_HOSTS_MAX : map->to == XCO_CONTROLLER) &&
                 map->count <= XCO_LOCATED_MAX && map->from <= map->until &&
                 map->until <= map->last && map->last < XCO_TIME_MAX;
    for (size_t i = 0; sound && i < map->count; i++) {
        sound = located_is_sound(header, &map->entries[i]);
    }
    return sound;
}

static bool arrivals_are_sound(const struct xco_header *header,
                               const struct xco_arrivals *arrivals) {
    return arrivals->to < XCO_HOSTS_MAX && arrivals->to != header->host &&
           arrivals->read_ns < XCO_TIME_MAX && arrivals->marks <= arrivals->packets;
}

// Whether two ends are nodes; a host counts only at its own port, and no port is named twice.
static bool ports_are_sound(const struct xco_header *header, const struct xco_ports *ports) {
    bool sound = ports->count <= XCO_PORTS_MAX;
    for (size_t i = 0; sound && i < ports->count; i++) {
        const struct xco_port *port = &ports->entries[i];
        sound = port->source < XCO_NODES_MAX && port->target < XCO_NODES_MAX &&
                port->source != port->target && port->read_ns < XCO_TIME_MAX &&
                port->coordinated_bytes <= port->bytes &&
                (header->host == XCO_AGENT || port->target == header->host);
        for (size_t j = 0; sound && j < i; j++) {
            sound = ports->entries[j].source != port->source ||
                    ports->entries[j].target != port->target;
        }
    }
    return sound;
}

bool xco_wire_is_sound(const struct xco_message *message) {
    if (!header_is_sound(&message->header)) {
        return false;
    }
    switch (message->header.type) {
    case XCO_WELCOME:
        return welcome_is_sound(&message->body.welcome);
    case XCO_REPORT:
        return report_is_sound(&message->body.report);
    case XCO_DIRECTIVE:
        return directive_is_sound(&message->body.directive);
    case XCO_PLACES:
    case XCO_MAP:
        return map_is_sound(&message->header, &message->body.map);
    case XCO_MARKS:
        return arrivals_are_sound(&message->header, &message->body.arrivals);
    case XCO_PORT:
        return ports_are_sound(&message->header, &message->body.ports);
    default:
        return true;
    }
}
