/* Attaches an interface as a wire, and reads its map again when that changes. */
#include "program/wire_kind.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "program/ending.h"
#include "system/log.h"
#include "wire/wire_port.h"

enum { PROBLEM_BYTES = 256 };

struct zovn_wire_kind {
    struct zovn_line line;
    struct zovn_port *port; /* NULL: it is not attached */
    struct stat map;        /* the file that was read, or tried */
    char problem[PROBLEM_BYTES]; /* why the last try failed */
};

/* The control thread alone opens ports. */
static char refusal[PROBLEM_BYTES];

static const char *path_of(const struct zovn_wire_kind *wire) {
    return wire->line.options.wire.locations;
}

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

/* Return NULL, or why it cannot be attached. */
static const char *attach(struct zovn_wire_kind *wire) {
    const struct zovn_wire_settings settings = settings_of(&wire->line.options);
    const char *problem = NULL;
    struct zovn_attachment attachment = {.ask = zovn_wire_port_ask};
    stat(path_of(wire), &wire->map);
    attachment.port = zovn_wire_port_new(&settings, refusal);
    if (!attachment.port)
        return refusal;
    attachment.wakes[attachment.wake_count++] = zovn_wire_port_wake(attachment.port);
    if (!zovn_line_attach(&wire->line, &attachment, &problem)) {
        attachment.port->calls->free(attachment.port);
        return problem;
    }
    wire->port = attachment.port;
    zovn_say("%s: interface %s attached", wire->line.options.name, settings.interface);
    return NULL;
}

struct zovn_wire_kind *zovn_wire_kind_open(struct zovn_forwarder *forwarder,
                                           const struct zovn_port_options *options,
                                           const char **problem) {
    struct zovn_wire_kind *wire = calloc(1, sizeof *wire);
    *problem = "there is no memory for it";
    if (!wire)
        return NULL;
    zovn_line_init(&wire->line, forwarder, options);
    *problem = attach(wire);
    if (!*problem)
        return wire;
    free(wire);
    return NULL;
}

static void detach(struct zovn_wire_kind *wire) {
    zovn_ending_detach(&wire->line, wire->port, zovn_wire_port_end);
    wire->port = NULL;
}

void zovn_wire_kind_close(struct zovn_wire_kind *wire) {
    if (wire->port)
        detach(wire);
    free(wire);
}

struct zovn_line *zovn_wire_kind_line(struct zovn_wire_kind *wire) {
    return &wire->line;
}

/* Say each problem once, not each second. */
static void note(struct zovn_wire_kind *wire, const char *what, const char *problem) {
    const char *now = problem ? problem : "";
    if (*now && strcmp(now, wire->problem) != 0)
        zovn_say("%s: %s: %s", wire->line.options.name, what, now);
    snprintf(wire->problem, sizeof wire->problem, "%s", now);
}

/* A map is read while the switch forwards: its thread only begins to use it. */
struct relocation {
    struct zovn_wire_kind *wire;
    struct zovn_locations *locations; /* afterwards those that were used before */
};

static void relocate(void *context) {
    struct relocation *relocation = context;
    relocation->locations = zovn_wire_port_relocate(relocation->wire->port, relocation->locations);
}

static bool map_changed(struct zovn_wire_kind *wire) {
    struct stat now;
    const struct stat before = wire->map;
    if (stat(path_of(wire), &now))
        return false;
    wire->map = now;
    return now.st_ino != before.st_ino || now.st_size != before.st_size ||
           memcmp(&now.st_mtim, &before.st_mtim, sizeof now.st_mtim) != 0;
}

static void look_at_map(struct zovn_wire_kind *wire) {
    struct relocation relocation = {.wire = wire};
    if (!map_changed(wire))
        return;
    relocation.locations = zovn_locations_load(path_of(wire), refusal);
    note(wire, "the map of stations stays as it was", relocation.locations ? NULL : refusal);
    if (!relocation.locations)
        return;
    zovn_forwarder_call(wire->line.forwarder, relocate, &relocation);
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

static void look_at_mtu(struct zovn_wire_kind *wire) {
    struct limiting limiting = {wire->port, zovn_wire_port_mtu(wire->port)};
    if (limiting.mtu)
        zovn_forwarder_call(wire->line.forwarder, limit, &limiting);
}

void zovn_wire_kind_tick(struct zovn_wire_kind *wire) {
    const struct zovn_port_options *options = &wire->line.options;
    if (wire->port && zovn_wire_port_gone(wire->port)) {
        detach(wire);
        zovn_say("%s: interface %s is gone: waiting for it", options->name, options->interface);
    }
    if (!wire->port) {
        note(wire, "cannot be attached", attach(wire));
        return;
    }
    look_at_mtu(wire);
    look_at_map(wire);
}

void zovn_wire_kind_report(struct zovn_wire_kind *wire, FILE *to) {
    struct zovn_line_state state;
    zovn_line_look(&wire->line, &state);
    fprintf(to, " state=%s lost=%" PRIu64, wire->port ? "runs" : "gone",
            state.port.counters.overruns);
}
