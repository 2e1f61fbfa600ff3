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
    uint64_t lost;                    /* of earlier attachments, before frames came to the port */
    char problem[ZOVN_REFUSAL_BYTES]; /* why the last try failed */
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

/* Return NULL, or why it cannot be attached. */
static const char *attach(struct zovn_interface_port *named) {
    const char *problem = NULL;
    struct zovn_attachment attachment = {0};
    attachment.port = named->driver->open(interface_of(named), refusal);
    if (!attachment.port)
        return without_interface(named, refusal);
    if (!zovn_line_attach(&named->line, &attachment, &problem)) {
        attachment.port->calls->free(attachment.port);
        return problem;
    }
    named->port = attachment.port;
    named->was_there = true;
    zovn_say("%s: interface %s attached", name_of(named), interface_of(named));
    return NULL;
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
    if (driver->possible(options->interface))
        *problem = attach(named);
    else
        zovn_say("%s: interface %s does not exist or is down: waiting for it", options->name,
                 options->interface);
    if (!*problem)
        return named;
    free(named);
    return NULL;
}

/* What only the forwarding thread may look at. */
struct look {
    const struct zovn_interface_port *named;
    const char *state;
    uint64_t lost;
    bool gone;
};

static void look(void *context) {
    struct look *looked = context;
    const struct zovn_interface_port *named = looked->named;
    looked->state = named->driver->state(named->port);
    looked->lost = named->driver->lost(named->port);
    looked->gone = named->port->fault == ZOVN_PEER_GONE;
}

static struct look look_at(const struct zovn_interface_port *named) {
    struct look looked = {.named = named};
    zovn_forwarder_call(named->line.forwarder, look, &looked);
    return looked;
}

static void detach(struct zovn_interface_port *named) {
    named->lost += look_at(named).lost;
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

/* Say each problem once, not each second. */
static void try_again(struct zovn_interface_port *named) {
    const char *problem = attach(named);
    if (problem && strcmp(problem, named->problem) != 0)
        zovn_say("%s: interface %s cannot be attached: %s", name_of(named), interface_of(named),
                 problem);
    snprintf(named->problem, sizeof named->problem, "%s", problem ? problem : "");
}

void zovn_interface_port_tick(struct zovn_interface_port *named) {
    if (named->port && look_at(named).gone) {
        detach(named);
        zovn_say("%s: interface %s is gone: waiting for it", name_of(named), interface_of(named));
    }
    if (!named->port && named->driver->possible(interface_of(named)))
        try_again(named);
}

void zovn_interface_port_report(struct zovn_interface_port *named, FILE *to) {
    struct look looked = {.state = named->was_there ? "gone" : "missing"};
    struct zovn_line_state state;
    if (named->port)
        looked = look_at(named);
    zovn_line_look(&named->line, &state);
    fprintf(to, " state=%s lost=%" PRIu64, looked.state,
            named->lost + looked.lost + state.port.counters.overruns);
}
