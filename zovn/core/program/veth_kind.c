/* Attaches an interface while it is there. */
#include "program/veth_kind.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "system/log.h"
#include "veth/veth_port.h"

struct zovn_veth_kind {
    struct zovn_line line;
    struct zovn_port *port; /* NULL: it is not attached */
    bool was_there;
    uint64_t lost; /* of earlier attachments */
    char problem[ZOVN_VETH_PROBLEM]; /* why the last try failed */
};

/* The control thread alone opens ports. */
static char refusal[ZOVN_VETH_PROBLEM];

static const char *interface_of(const struct zovn_veth_kind *veth) {
    return veth->line.options.interface;
}

/* Problems begin with the interface, which the reader of this one knows. */
static const char *without_interface(const struct zovn_veth_kind *veth, const char *problem) {
    size_t length = strlen(interface_of(veth));
    bool names_it = strncmp(problem, interface_of(veth), length) == 0 && problem[length] == ':';
    return names_it ? problem + length + 2 : problem;
}

/* Return NULL, or why it cannot be attached. */
static const char *attach(struct zovn_veth_kind *veth) {
    const char *problem = NULL;
    struct zovn_attachment attachment = {.wakes = {-1, -1}};
    attachment.port = zovn_veth_port_new(interface_of(veth), refusal);
    if (!attachment.port)
        return without_interface(veth, refusal);
    if (!zovn_line_attach(&veth->line, &attachment, &problem)) {
        attachment.port->calls->free(attachment.port);
        return problem;
    }
    veth->port = attachment.port;
    veth->was_there = true;
    zovn_say("%s: interface %s attached", veth->line.options.name, interface_of(veth));
    return NULL;
}

struct zovn_veth_kind *zovn_veth_kind_open(struct zovn_forwarder *forwarder,
                                           const struct zovn_port_options *options,
                                           const char **problem) {
    struct zovn_veth_kind *veth = calloc(1, sizeof *veth);
    *problem = veth ? NULL : "there is no memory for it";
    if (!veth)
        return NULL;
    zovn_line_init(&veth->line, forwarder, options);
    if (zovn_veth_port_possible(options->interface))
        *problem = attach(veth);
    else
        zovn_say("%s: interface %s does not exist or is down: waiting for it", options->name,
                 options->interface);
    if (!*problem)
        return veth;
    free(veth);
    return NULL;
}

struct look {
    const struct zovn_port *port;
    enum zovn_veth_state state;
    uint64_t lost;
};

static void look(void *context) {
    struct look *looked = context;
    looked->state = zovn_veth_port_state(looked->port);
    looked->lost = zovn_veth_port_lost(looked->port);
}

static struct look look_at(struct zovn_veth_kind *veth) {
    struct look looked = {.port = veth->port};
    zovn_forwarder_call(veth->line.forwarder, look, &looked);
    return looked;
}

static void detach(struct zovn_veth_kind *veth) {
    veth->lost += look_at(veth).lost;
    zovn_line_detach(&veth->line);
    veth->port = NULL;
}

void zovn_veth_kind_close(struct zovn_veth_kind *veth) {
    if (veth->port)
        detach(veth);
    free(veth);
}

struct zovn_line *zovn_veth_kind_line(struct zovn_veth_kind *veth) {
    return &veth->line;
}

/* Say each problem once, not each second. */
static void try_again(struct zovn_veth_kind *veth) {
    const char *problem = attach(veth);
    if (problem && strcmp(problem, veth->problem) != 0)
        zovn_say("%s: interface %s cannot be attached: %s", veth->line.options.name,
                 interface_of(veth), problem);
    snprintf(veth->problem, sizeof veth->problem, "%s", problem ? problem : "");
}

void zovn_veth_kind_tick(struct zovn_veth_kind *veth) {
    if (veth->port && look_at(veth).state == ZOVN_VETH_GONE) {
        detach(veth);
        zovn_say("%s: interface %s is gone: waiting for it", veth->line.options.name,
                 interface_of(veth));
    }
    if (!veth->port && zovn_veth_port_possible(interface_of(veth)))
        try_again(veth);
}

void zovn_veth_kind_report(struct zovn_veth_kind *veth, FILE *to) {
    static const char *const STATES[] = {
        [ZOVN_VETH_SILENT] = "silent",
        [ZOVN_VETH_FIRST] = "first",
        [ZOVN_VETH_RUNS] = "runs",
        [ZOVN_VETH_GONE] = "gone",
    };
    const char *state = veth->was_there ? "gone" : "missing";
    uint64_t lost = veth->lost;
    if (veth->port) {
        struct look looked = look_at(veth);
        state = STATES[looked.state];
        lost += looked.lost;
    }
    fprintf(to, " state=%s lost=%" PRIu64, state, lost);
}
