/* Attaches an interface while it is there. */
#include "program/interface_port.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "program/ending.h"
#include "system/log.h"

struct zovn_interface_port {
    const struct zovn_interface_driver *driver;
    struct zovn_line line;
    struct zovn_port *port; /* NULL: it is not attached */
    bool was_there;
    /* What was said of this attachment, at most. */
    uint64_t most_lost;
    uint64_t lost;                    /* of earlier attachments, before frames came to the port */
    char problem[ZOVN_REFUSAL_BYTES]; /* why it is not attached, as it was said */
};

/* The control thread alone opens ports. */
static char refusal[ZOVN_REFUSAL_BYTES];

static const char *name_of(const struct zovn_interface_port *named) {
    return named->line.options.name;
}

static const char *interface_of(const struct zovn_interface_port *named) {
    return named->line.options.interface;
}

/* A problem may begin with the interface, which the reader of this one knows. */
static const char *without_interface(const struct zovn_interface_port *named, const char *problem) {
    size_t length = strlen(interface_of(named));
    bool names_it = strncmp(problem, interface_of(named), length) == 0 && problem[length] == ':';
    return names_it ? problem + length + 2 : problem;
}

static struct zovn_attachment attachment_of(const struct zovn_interface_driver *driver,
                                            struct zovn_port *port) {
    struct zovn_attachment attachment = {.port = port, .ask = driver->ask};
    if (driver->wake)
        attachment.wakes[attachment.wake_count++] = driver->wake(port);
    return attachment;
}

/* Return NULL, or why it cannot be attached. */
static const char *attach(struct zovn_interface_port *named) {
    const char *problem = NULL;
    struct zovn_port *port = named->driver->open(&named->line.options, refusal);
    if (!port)
        return without_interface(named, refusal);
    const struct zovn_attachment attachment = attachment_of(named->driver, port);
    if (!zovn_line_attach(&named->line, &attachment, &problem)) {
        port->calls->free(port);
        return problem;
    }
    named->port = port;
    named->was_there = true;
    zovn_say("%s: interface %s attached", name_of(named), interface_of(named));
    return NULL;
}

static const char *missing(const struct zovn_interface_port *named) {
    const struct zovn_interface_driver *driver = named->driver;
    return driver->missing ? driver->missing(&named->line.options) : NULL;
}

/* Say each problem once, not each second. */
static void note(struct zovn_interface_port *named, const char *before, const char *problem,
                 const char *after) {
    const char *now = problem ? problem : "";
    if (*now && strcmp(now, named->problem) != 0)
        zovn_say("%s: interface %s %s%s%s", name_of(named), interface_of(named), before, now,
                 after);
    snprintf(named->problem, sizeof named->problem, "%s", now);
}

static void note_missing(struct zovn_interface_port *named, const char *lacks) {
    note(named, "", lacks, ": waiting for it");
}

struct zovn_interface_port *zovn_interface_port_open(const struct zovn_interface_driver *driver,
                                                     struct zovn_forwarder *forwarder,
                                                     const struct zovn_port_options *options,
                                                     const char **problem) {
    struct zovn_interface_port *named = calloc(1, sizeof *named);
    *problem = named ? NULL : "there is no memory for it";
    if (!named)
        return NULL;
    named->driver = driver;
    zovn_line_init(&named->line, forwarder, options);
    const char *lacks = missing(named);
    if (lacks)
        note_missing(named, lacks);
    else
        *problem = attach(named);
    if (!*problem)
        return named;
    free(named);
    return NULL;
}

/* What only the forwarding thread may look at. */
struct look {
    const struct zovn_interface_port *named;
    const char *state;
    bool gone;
};

static void look(void *context) {
    struct look *looked = context;
    const struct zovn_interface_port *named = looked->named;
    looked->state = named->driver->state(named->port);
    looked->gone = named->port->fault == ZOVN_PEER_GONE;
}

static struct look look_at(const struct zovn_interface_port *named) {
    struct look looked = {.named = named};
    zovn_forwarder_call(named->line.forwarder, look, &looked);
    return looked;
}

/* An interface that has left this network namespace says nothing. */
static uint64_t lost_now(struct zovn_interface_port *named) {
    const struct zovn_interface_driver *driver = named->driver;
    uint64_t said = named->port && driver->lost ? driver->lost(named->port) : 0;
    if (said > named->most_lost)
        named->most_lost = said;
    return named->most_lost;
}

static bool is_gone(const struct zovn_interface_port *named) {
    const struct zovn_interface_driver *driver = named->driver;
    return look_at(named).gone || (driver->gone && driver->gone(named->port));
}

static void detach(struct zovn_interface_port *named) {
    named->lost += lost_now(named);
    named->most_lost = 0;
    zovn_ending_detach(&named->line, named->port, named->driver->end);
    named->port = NULL;
}

void zovn_interface_port_close(struct zovn_interface_port *named) {
    if (named->port)
        detach(named);
    free(named);
}

struct zovn_line *zovn_interface_port_line(struct zovn_interface_port *named) {
    return &named->line;
}

struct zovn_port *zovn_interface_port_attached(const struct zovn_interface_port *named) {
    return named->port;
}

void zovn_interface_port_tick(struct zovn_interface_port *named) {
    if (named->port && is_gone(named)) {
        detach(named);
        zovn_say("%s: interface %s is gone", name_of(named), interface_of(named));
    }
    if (named->port)
        return;
    const char *lacks = missing(named);
    if (lacks)
        note_missing(named, lacks);
    else
        note(named, "cannot be attached: ", attach(named), "");
}

void zovn_interface_port_report(struct zovn_interface_port *named, FILE *to) {
    struct look looked = {.state = named->was_there ? "gone" : "missing"};
    struct zovn_line_state state;
    if (named->port)
        looked = look_at(named);
    zovn_line_look(&named->line, &state);
    fprintf(to, " state=%s lost=%" PRIu64, looked.state,
            named->lost + lost_now(named) + state.port.counters.overruns);
}
