/* Attaches an interface as a wire, and follows its map and its MTU. */
#include "program/wire_kind.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "system/log.h"
#include "wire/wire_port.h"

struct zovn_wire_kind {
    struct zovn_interface_port *named;
    struct stat map;                      /* the file that was read, or tried */
    char problem[ZOVN_LOCATIONS_PROBLEM]; /* why the last try failed */
};

static struct zovn_wire_settings settings_of(const struct zovn_port_options *options) {
    const struct zovn_wire_options *wire = &options->wire;
    struct zovn_wire_settings settings = {
        .interface = options->interface,
        .locations = wire->locations,
        .rate_bps = wire->rate_bps,
        .delay_ns = wire->delay_ns,
        .response_ns = wire->response_ns,
        .ring_bytes = wire->ring_bytes,
        .buffer_bytes = wire->buffer_bytes,
        .vni = wire->vni,
        .pfc = wire->pfc,
        .class = options->settings.class,
    };
    memcpy(settings.local, wire->local, sizeof settings.local);
    return settings;
}

static const char *missing(const struct zovn_port_options *options) {
    return zovn_wire_port_missing(options->interface, options->wire.local);
}

static struct zovn_port *open_port(const struct zovn_port_options *options, char *problem) {
    const struct zovn_wire_settings settings = settings_of(options);
    return zovn_wire_port_new(&settings, problem);
}

static const char *state(const struct zovn_port *port) {
    return port->fault ? "gone" : "runs";
}

static const struct zovn_interface_driver DRIVER = {
    .missing = missing,
    .open = open_port,
    .ask = zovn_wire_port_ask,
    .wake = zovn_wire_port_wake,
    .state = state,
    .gone = zovn_wire_port_gone,
    .end = zovn_wire_port_end,
};

static const struct zovn_port_options *options_of(const struct zovn_wire_kind *wire) {
    return &zovn_interface_port_line(wire->named)->options;
}

struct zovn_wire_kind *zovn_wire_kind_open(struct zovn_forwarder *forwarder,
                                           const struct zovn_port_options *options,
                                           const char **problem) {
    struct zovn_wire_kind *wire = calloc(1, sizeof *wire);
    *problem = "there is no memory for it";
    if (!wire)
        return NULL;
    stat(options->wire.locations, &wire->map);
    wire->named = zovn_interface_port_open(&DRIVER, forwarder, options, problem);
    if (wire->named)
        return wire;
    free(wire);
    return NULL;
}

void zovn_wire_kind_close(struct zovn_wire_kind *wire) {
    zovn_interface_port_close(wire->named);
    free(wire);
}

struct zovn_interface_port *zovn_wire_kind_interface(struct zovn_wire_kind *wire) {
    return wire->named;
}

static void call(const struct zovn_wire_kind *wire, void (*made)(void *context), void *context) {
    zovn_forwarder_call(zovn_interface_port_line(wire->named)->forwarder, made, context);
}

/* A map is read while the switch forwards: its thread only begins to use it. */
struct relocation {
    struct zovn_port *port;
    struct zovn_locations *locations; /* afterwards those that were used before */
};

static void relocate(void *context) {
    struct relocation *relocation = context;
    relocation->locations = zovn_wire_port_relocate(relocation->port, relocation->locations);
}

static bool map_changed(struct zovn_wire_kind *wire) {
    struct stat now;
    const struct stat before = wire->map;
    if (stat(options_of(wire)->wire.locations, &now))
        return false;
    wire->map = now;
    return now.st_ino != before.st_ino || now.st_size != before.st_size ||
           memcmp(&now.st_mtim, &before.st_mtim, sizeof now.st_mtim) != 0;
}

/* Say each problem once, not after each change. */
static void note(struct zovn_wire_kind *wire, const char *problem) {
    if (*problem && strcmp(problem, wire->problem) != 0)
        zovn_say("%s: the map of stations stays as it was: %s", options_of(wire)->name, problem);
    snprintf(wire->problem, sizeof wire->problem, "%s", problem);
}

static void follow_map(struct zovn_wire_kind *wire, struct zovn_port *port) {
    char problem[ZOVN_LOCATIONS_PROBLEM] = "";
    struct relocation relocation = {.port = port};
    if (!map_changed(wire))
        return;
    relocation.locations = zovn_locations_load(options_of(wire)->wire.locations, problem);
    note(wire, problem);
    if (!relocation.locations)
        return;
    call(wire, relocate, &relocation);
    zovn_locations_free(relocation.locations);
}

/* The kernel may have who asks for an MTU wait: the forwarding thread is only told. */
struct limiting {
    struct zovn_port *port;
    uint32_t mtu;
};

static void limit(void *context) {
    const struct limiting *limiting = context;
    zovn_wire_port_limit(limiting->port, limiting->mtu);
}

static void follow_mtu(const struct zovn_wire_kind *wire, struct zovn_port *port) {
    struct limiting limiting = {port, zovn_wire_port_mtu(port)};
    if (limiting.mtu)
        call(wire, limit, &limiting);
}

/* A port that is attached now has read the map since it was looked at. */
void zovn_wire_kind_tick(struct zovn_wire_kind *wire) {
    if (!zovn_interface_port_attached(wire->named))
        map_changed(wire);
    zovn_interface_port_tick(wire->named);
    struct zovn_port *port = zovn_interface_port_attached(wire->named);
    if (!port)
        return;
    follow_mtu(wire, port);
    follow_map(wire, port);
}
