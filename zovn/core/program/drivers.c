/* What veths and taps can do, as ports by interface see it. */
#include "program/drivers.h"

#include "tap/tap_port.h"
#include "veth/veth_port.h"

_Static_assert((int)ZOVN_VETH_PROBLEM <= (int)ZOVN_REFUSAL_BYTES, "a problem has room");
_Static_assert((int)ZOVN_TAP_PROBLEM <= (int)ZOVN_REFUSAL_BYTES, "a problem has room");

static const char *veth_missing(const struct zovn_port_options *options) {
    return zovn_veth_port_possible(options->interface) ? NULL : "does not exist or is down";
}

static struct zovn_port *veth_open(const struct zovn_port_options *options, char *problem) {
    return zovn_veth_port_new(options->interface, problem);
}

static const char *veth_state(const struct zovn_port *port) {
    static const char *const STATES[] = {
        [ZOVN_VETH_SILENT] = "silent",
        [ZOVN_VETH_FIRST] = "first",
        [ZOVN_VETH_RUNS] = "runs",
        [ZOVN_VETH_GONE] = "gone",
    };
    return STATES[zovn_veth_port_state(port)];
}

const struct zovn_interface_driver ZOVN_VETH_DRIVER = {
    .missing = veth_missing,
    .open = veth_open,
    .state = veth_state,
    .lost = zovn_veth_port_lost,
    .end = zovn_veth_port_end,
};

static struct zovn_port *tap_open(const struct zovn_port_options *options, char *problem) {
    return zovn_tap_port_new(options->interface, problem);
}

static const char *tap_state(const struct zovn_port *port) {
    return port->fault ? "gone" : "lossy";
}

/* It is made where there is none, so nothing is missing. */
const struct zovn_interface_driver ZOVN_TAP_DRIVER = {
    .open = tap_open,
    .state = tap_state,
    .lost = zovn_tap_port_lost,
};
