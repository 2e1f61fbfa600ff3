/* The table of kinds: a new one needs its functions and a line here. */
#include "program/kinds.h"

#include <string.h>

#include "program/veth_kind.h"
#include "vhost/vhost.h"

static void *vhost_open(struct zovn_forwarder *forwarder, const struct zovn_port_options *options,
                        const char **problem) {
    return zovn_vhost_open(forwarder, options, problem);
}

static void vhost_close(void *opened) {
    zovn_vhost_close(opened);
}

static struct zovn_line *vhost_line(void *opened) {
    return zovn_vhost_line(opened);
}

static void *veth_open(struct zovn_forwarder *forwarder, const struct zovn_port_options *options,
                       const char **problem) {
    return zovn_veth_kind_open(forwarder, options, problem);
}

static void veth_close(void *opened) {
    zovn_veth_kind_close(opened);
}

static struct zovn_line *veth_line(void *opened) {
    return zovn_veth_kind_line(opened);
}

static void veth_tick(void *opened) {
    zovn_veth_kind_tick(opened);
}

static void veth_report(void *opened, FILE *to) {
    zovn_veth_kind_report(opened, to);
}

static const struct zovn_kind KINDS[] = {
    {.name = "vhost", .open = vhost_open, .close = vhost_close, .line = vhost_line},
    {.name = "veth",
     .by_interface = true,
     .open = veth_open,
     .close = veth_close,
     .line = veth_line,
     .tick = veth_tick,
     .report = veth_report},
};

const struct zovn_kind *zovn_kind_find(const char *name) {
    for (uint32_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++)
        if (strcmp(KINDS[i].name, name) == 0)
            return &KINDS[i];
    return NULL;
}
