/* The table of kinds: a new one needs its functions and a line here. */
#include "program/kinds.h"

#include <string.h>

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

static const struct zovn_kind KINDS[] = {
    {"vhost", vhost_open, vhost_close, vhost_line},
};

const struct zovn_kind *zovn_kind_find(const char *name) {
    for (uint32_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++)
        if (strcmp(KINDS[i].name, name) == 0)
            return &KINDS[i];
    return NULL;
}
