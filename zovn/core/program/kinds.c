/* The table of kinds: a new one needs its functions and a line here. */
#include "program/kinds.h"

#include <string.h>

#include "program/drivers.h"
#include "program/wire_kind.h"
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
    return zovn_interface_port_open(&ZOVN_VETH_DRIVER, forwarder, options, problem);
}

static void *tap_open(struct zovn_forwarder *forwarder, const struct zovn_port_options *options,
                      const char **problem) {
    return zovn_interface_port_open(&ZOVN_TAP_DRIVER, forwarder, options, problem);
}

static void interface_close(void *opened) {
    zovn_interface_port_close(opened);
}

static struct zovn_line *interface_line(void *opened) {
    return zovn_interface_port_line(opened);
}

static void interface_tick(void *opened) {
    zovn_interface_port_tick(opened);
}

static void interface_report(void *opened, FILE *to) {
    zovn_interface_port_report(opened, to);
}

static void *wire_open(struct zovn_forwarder *forwarder, const struct zovn_port_options *options,
                       const char **problem) {
    return zovn_wire_kind_open(forwarder, options, problem);
}

static void wire_close(void *opened) {
    zovn_wire_kind_close(opened);
}

static struct zovn_line *wire_line(void *opened) {
    return interface_line(zovn_wire_kind_interface(opened));
}

static void wire_tick(void *opened) {
    zovn_wire_kind_tick(opened);
}

static void wire_report(void *opened, FILE *to) {
    interface_report(zovn_wire_kind_interface(opened), to);
}

#define BY_INTERFACE(kind, opens) \
    {.name = kind,                \
     .by_interface = true,        \
     .open = opens,               \
     .close = interface_close,    \
     .line = interface_line,      \
     .tick = interface_tick,      \
     .report = interface_report}

static const struct zovn_kind KINDS[] = {
    {.name = "vhost", .open = vhost_open, .close = vhost_close, .line = vhost_line},
    BY_INTERFACE("veth", veth_open),
    BY_INTERFACE("tap", tap_open),
    {.name = "wire",
     .is_wire = true,
     .by_interface = true,
     .open = wire_open,
     .close = wire_close,
     .line = wire_line,
     .tick = wire_tick,
     .report = wire_report},
};

const struct zovn_kind *zovn_kind_find(const char *name) {
    for (uint32_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++)
        if (strcmp(KINDS[i].name, name) == 0)
            return &KINDS[i];
    return NULL;
}
