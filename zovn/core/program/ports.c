/* Adds, removes and lists ports. */
#include "program/ports.h"

#include <inttypes.h>
#include <string.h>

#include "program/port_words.h"
#include "program/report.h"

static const struct zovn_port_options *options_of(const struct zovn_named *named) {
    return &named->kind->line(named->opened)->options;
}

static int32_t find(const struct zovn_ports *ports, const char *name) {
    for (uint32_t i = 0; i < ports->count; i++)
        if (strcmp(options_of(&ports->named[i])->name, name) == 0)
            return (int32_t)i;
    return -1;
}

/* Return where a port's peer is. */
static const char *place_of(const struct zovn_port_options *options) {
    return *options->path ? options->path : options->interface;
}

static bool same_place(const struct zovn_ports *ports, const char *place) {
    for (uint32_t i = 0; i < ports->count; i++)
        if (strcmp(place_of(options_of(&ports->named[i])), place) == 0)
            return true;
    return false;
}

static bool has_static(const struct zovn_port_options *options, uint16_t vlan,
                       const uint8_t *address) {
    for (uint32_t i = 0; i < options->address_count; i++)
        if (options->settings.vlan == vlan && memcmp(options->addresses[i], address, 6) == 0)
            return true;
    return false;
}

/* Return the port with this static address, or NULL. */
static const struct zovn_port_options *owner_of(const struct zovn_ports *ports, uint16_t vlan,
                                                const uint8_t *address) {
    for (uint32_t i = 0; i < ports->count; i++)
        if (has_static(options_of(&ports->named[i]), vlan, address))
            return options_of(&ports->named[i]);
    return NULL;
}

/* So that each address is the port's whenever its peer is attached. */
static bool check_addresses(const struct zovn_ports *ports, const struct zovn_port_options *options,
                            struct zovn_problem *problem) {
    const uint16_t vlan = options->settings.vlan;
    if (options->address_count > ports->addresses)
        return zovn_refuse(problem,
                           "%s: %" PRIu32 " static addresses; `addresses` of [switch] allows "
                           "%" PRIu32 " for each port",
                           options->name, options->address_count, ports->addresses);
    for (uint32_t i = 0; i < options->address_count; i++) {
        const uint8_t *one = options->addresses[i];
        const struct zovn_port_options *owner = owner_of(ports, vlan, one);
        if (owner)
            return zovn_refuse(problem,
                               "%s: %02x:%02x:%02x:%02x:%02x:%02x in VLAN %d is a static address "
                               "of port %s",
                               options->name, one[0], one[1], one[2], one[3], one[4], one[5], vlan,
                               owner->name);
    }
    return true;
}

static bool check_new(const struct zovn_ports *ports, const struct zovn_port_options *options,
                      struct zovn_problem *problem) {
    if (find(ports, options->name) >= 0)
        return zovn_refuse(problem, "%s: there is a port of this name", options->name);
    if (same_place(ports, place_of(options)))
        return zovn_refuse(problem, "%s: another port has %s", options->name, place_of(options));
    if (ports->count == ZOVN_MOST_PORTS)
        return zovn_refuse(problem, "%s: there are 72 ports already", options->name);
    return check_addresses(ports, options, problem);
}

bool zovn_ports_add(struct zovn_ports *ports, char *words, struct zovn_problem *problem) {
    struct zovn_port_options options;
    struct zovn_named named = {0};
    if (!zovn_port_words(words, &options, &named.kind, problem) ||
        !check_new(ports, &options, problem))
        return false;
    const char *wrong = NULL;
    named.opened = named.kind->open(ports->forwarder, &options, &wrong);
    if (!named.opened)
        return zovn_refuse(problem, "%s: %s: %s", options.name, place_of(&options), wrong);
    ports->named[ports->count++] = named;
    return true;
}

static void remove_at(struct zovn_ports *ports, uint32_t at) {
    struct zovn_named *named = &ports->named[at];
    named->kind->close(named->opened);
    memmove(named, named + 1, (--ports->count - at) * sizeof *named);
}

bool zovn_ports_remove(struct zovn_ports *ports, const char *name, struct zovn_problem *problem) {
    int32_t at = find(ports, name);
    if (at < 0)
        return zovn_refuse(problem, "%.32s: there is no such port", name);
    remove_at(ports, (uint32_t)at);
    return true;
}

void zovn_ports_remove_all(struct zovn_ports *ports) {
    while (ports->count)
        remove_at(ports, ports->count - 1);
}

void zovn_ports_tick(struct zovn_ports *ports) {
    for (uint32_t i = 0; i < ports->count; i++)
        if (ports->named[i].kind->tick)
            ports->named[i].kind->tick(ports->named[i].opened);
}

/* An interface that was removed is detached a moment later. */
static bool has_peer(const struct zovn_line_state *state) {
    return state->attached && state->port.fault != ZOVN_PEER_GONE;
}

void zovn_ports_write(const struct zovn_ports *ports, bool counters, FILE *to) {
    for (uint32_t i = 0; i < ports->count; i++) {
        const struct zovn_named *named = &ports->named[i];
        struct zovn_line *line = named->kind->line(named->opened);
        struct zovn_line_state state;
        zovn_line_look(line, &state);
        fprintf(to, "port name=%s kind=%s %s=%s attached=%d attachments=%llu", line->options.name,
                named->kind->name, named->kind->by_interface ? "interface" : "path",
                place_of(&line->options), has_peer(&state), (unsigned long long)state.attachments);
        if (named->kind->report)
            named->kind->report(named->opened, to);
        zovn_report_settings(&line->options, to);
        if (counters)
            zovn_report_state(&state, to);
        fputc('\n', to);
    }
}
