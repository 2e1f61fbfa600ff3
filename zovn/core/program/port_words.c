/* Reads a port from its words, each checked by itself; then the port as a whole. */
#include "program/port_words.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

enum { MOST_QUEUES = 8 };

/* A port while it is read. */
struct reading {
    struct zovn_port_options *options;
    const struct zovn_kind *kind;
};

static bool copy(char *to, const char *value, size_t room) {
    size_t length = strlen(value);
    if (!length || length >= room)
        return false;
    memcpy(to, value, length + 1);
    return true;
}

static bool set_name(struct reading *reading, char *value) {
    for (const char *at = value; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("-_.", *at))
            return false;
    return copy(reading->options->name, value, ZOVN_NAME_BYTES);
}

static bool set_kind(struct reading *reading, char *value) {
    reading->kind = zovn_kind_find(value);
    return reading->kind;
}

static bool set_path(struct reading *reading, char *value) {
    return *value == '/' && copy(reading->options->path, value, ZOVN_PATH_BYTES);
}

static bool set_interface(struct reading *reading, char *value) {
    return !strchr(value, '/') && copy(reading->options->interface, value, ZOVN_INTERFACE_BYTES);
}

static bool set_rate(struct reading *reading, char *value) {
    return zovn_number(value, UINT64_MAX, &reading->options->settings.rate_bps);
}

static bool set_vlan(struct reading *reading, char *value) {
    uint64_t vlan;
    if (!zovn_number(value, ZOVN_MOST_VLAN, &vlan))
        return false;
    reading->options->settings.vlan = (uint16_t)vlan;
    return true;
}

static bool set_tagged(struct reading *reading, char *value) {
    reading->options->settings.trunk = true;
    return zovn_vlans(value, reading->options->settings.vlans);
}

static bool set_trust(struct reading *reading, char *value) {
    static const char *const NAMES[] = {"nothing", "priority", "dscp"};
    for (uint8_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (strcmp(NAMES[i], value) == 0) {
            reading->options->settings.trust = i;
            return true;
        }
    }
    return false;
}

static bool set_class(struct reading *reading, char *value) {
    uint64_t class;
    if (!zovn_number(value, ZOVN_CLASSES - 1, &class))
        return false;
    reading->options->settings.class = (uint8_t)class;
    return true;
}

static bool set_address(struct reading *reading, char *value) {
    struct zovn_port_options *options = reading->options;
    return options->address_count < ZOVN_MOST_STATIC &&
           zovn_station(value, options->addresses[options->address_count++]);
}

static bool set_offloads(struct reading *reading, char *value) {
    uint64_t offloads;
    if (!zovn_number(value, 1, &offloads))
        return false;
    reading->options->offloads = offloads;
    return true;
}

static bool set_queues(struct reading *reading, char *value) {
    uint64_t queues;
    if (!zovn_number(value, MOST_QUEUES, &queues) || !queues)
        return false;
    reading->options->queues = (uint32_t)queues;
    return true;
}

static bool set_group(struct reading *reading, char *value) {
    uint64_t group;
    if (!zovn_number(value, UINT32_MAX - 1, &group))
        return false;
    reading->options->group = (int64_t)group;
    return true;
}

static bool set_locations(struct reading *reading, char *value) {
    return *value == '/' && copy(reading->options->wire.locations, value, ZOVN_PATH_BYTES);
}

static bool set_local(struct reading *reading, char *value) {
    return inet_pton(AF_INET, value, reading->options->wire.local) == 1;
}

static bool set_vni(struct reading *reading, char *value) {
    uint64_t vni;
    if (!zovn_number(value, 0xffffff, &vni))
        return false;
    reading->options->wire.vni = (uint32_t)vni;
    return true;
}

static bool set_pfc(struct reading *reading, char *value) {
    uint64_t classes;
    if (!zovn_number(value, 255, &classes))
        return false;
    reading->options->wire.pfc = (uint8_t)classes;
    return true;
}

static bool set_line_rate(struct reading *reading, char *value) {
    return zovn_number(value, UINT64_MAX, &reading->options->wire.rate_bps);
}

static bool set_delay(struct reading *reading, char *value) {
    return zovn_number(value, UINT64_MAX, &reading->options->wire.delay_ns);
}

static bool set_response(struct reading *reading, char *value) {
    return zovn_number(value, UINT64_MAX, &reading->options->wire.response_ns);
}

static bool set_ring(struct reading *reading, char *value) {
    return zovn_number(value, UINT32_MAX, &reading->options->wire.ring_bytes);
}

static bool set_buffer(struct reading *reading, char *value) {
    return zovn_number(value, UINT32_MAX, &reading->options->wire.buffer_bytes);
}

static const struct {
    const char *key, *form;
    bool (*set)(struct reading *reading, char *value);
} KEYS[] = {
    {"name", "1 to 32 letters, digits, dots, dashes and underscores", set_name},
    {"kind", "vhost, veth, tap or wire", set_kind},
    {"path", "a path from / on, of at most 107 bytes", set_path},
    {"interface", "the name of an interface, of at most 15 bytes", set_interface},
    {"rate", "bits per second; 0: no limit", set_rate},
    {"vlan", "a VLAN from 1 to 4094, or 0 for a trunk without one", set_vlan},
    {"tagged", "VLANs such as 10,20-29", set_tagged},
    {"trust", "nothing, priority or dscp", set_trust},
    {"class", "a class from 0 to 7", set_class},
    {"address", "at most 16 addresses of stations such as 02:00:00:00:00:01", set_address},
    {"offloads", "0 or 1", set_offloads},
    {"queues", "1 to 8 pairs of rings", set_queues},
    {"group", "the number of a group", set_group},
    {"locations", "the path of a map, from / on, of at most 107 bytes", set_locations},
    {"local", "an IPv4 address of this host", set_local},
    {"vni", "a number from 0 to 16777215", set_vni},
    {"pfc", "classes as a number of eight bits", set_pfc},
    {"line_rate", "bits per second", set_line_rate},
    {"delay", "nanoseconds", set_delay},
    {"response", "nanoseconds", set_response},
    {"ring", "bytes", set_ring},
    {"buffer", "bytes", set_buffer},
};

static bool set(struct reading *reading, char *word, struct zovn_problem *problem) {
    char *value = zovn_value(word);
    for (uint32_t i = 0; value && i < sizeof KEYS / sizeof KEYS[0]; i++)
        if (strcmp(KEYS[i].key, word) == 0)
            return KEYS[i].set(reading, value) ||
                   zovn_refuse(problem, "%s: write %s", word, KEYS[i].form);
    return zovn_refuse(problem, "%.32s: no such key of a port", word);
}

static bool check_place(const struct reading *reading, struct zovn_problem *problem) {
    const struct zovn_port_options *options = reading->options;
    bool has_path = *options->path, has_interface = *options->interface;
    const char *name = reading->kind->name;
    if (!reading->kind->by_interface)
        return (has_path && !has_interface) ||
               zovn_refuse(problem, "a port of kind %s needs path, and no interface", name);
    if (!has_interface || has_path)
        return zovn_refuse(problem, "a port of kind %s needs interface, and no path", name);
    return (!options->offloads && options->group < 0) ||
           zovn_refuse(problem, "a port of kind %s has neither offloads nor group", name);
}

static bool check_wire(const struct reading *reading, struct zovn_problem *problem) {
    bool has = *reading->options->wire.locations, is = reading->kind->is_wire;
    return has == is || zovn_refuse(problem,
                                    is ? "a port of kind %s needs locations"
                                       : "a port of kind %s has no locations",
                                    reading->kind->name);
}

static bool check(const struct reading *reading, struct zovn_problem *problem) {
    const struct zovn_port_options *options = reading->options;
    if (!*options->name || !reading->kind)
        return zovn_refuse(problem, "a port needs name and kind");
    if (!check_place(reading, problem) || !check_wire(reading, problem))
        return false;
    const char *wrong = zovn_port_problem(&options->settings);
    if (wrong)
        return zovn_refuse(problem, "%s", wrong);
    if (options->address_count && !options->settings.vlan)
        return zovn_refuse(problem, "address: needs a VLAN of frames without a tag");
    return true;
}

bool zovn_port_words(char *line, struct zovn_port_options *options, const struct zovn_kind **kind,
                     struct zovn_problem *problem) {
    struct reading reading = {.options = options};
    *options = (struct zovn_port_options){.settings = {.vlan = 1}, .queues = 1, .group = -1};
    for (char *word; (word = zovn_word(&line));)
        if (!set(&reading, word, problem))
            return false;
    *kind = reading.kind;
    return check(&reading, problem);
}
