/* What veths and taps can do, as ports by interface see it. */
#include "program/drivers.h"

#include "tap/tap_port.h"
#include "veth/veth_port.h"

_Static_assert((int)ZOVN_VETH_PROBLEM <= (int)ZOVN_REFUSAL_BYTES, "a problem has room");
_Static_assert((int)ZOVN_TAP_PROBLEM <= (int)ZOVN_REFUSAL_BYTES, "a problem has room");

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
    .possible = zovn_veth_port_possible,
    .open = zovn_veth_port_new,
    .state = veth_state,
    .lost = zovn_veth_port_lost,
    .end = zovn_veth_port_end,
};

/* It is made where there is none. */
static bool always(const char *interface) {
    (void)interface;
    return true;
}

static const char *tap_state(const struct zovn_port *port) {
    return port->fault ? "gone" : "lossy";
}

const struct zovn_interface_driver ZOVN_TAP_DRIVER = {
    .possible = always,
    .open = zovn_tap_port_new,
    .state = tap_state,
    .lost = zovn_tap_port_lost,
};
