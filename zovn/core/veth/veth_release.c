/* Undoes what a killed process left at the host's end of a veth. */
#include <errno.h>

#include "veth/interface.h"
#include "veth/napi.h"
#include "veth/napi_poll.h"
#include "veth/problem.h"
#include "veth/program.h"
#include "veth/veth_port.h"

/* Only one program can be attached: whether this works says whether a switch runs. */
static int try_attach(uint32_t interface) {
    struct zovn_program program;
    int error = zovn_program_load(&program);
    if (!error)
        error = zovn_program_attach(&program, interface);
    zovn_program_close(&program);
    return error;
}

/* The killed switch's NAPI may have left the container's queue stopped: a new one wakes it. */
static void wake(const struct zovn_napi_control *control, const struct zovn_interface *interface) {
    zovn_interface_join(interface, false);
    zovn_interface_join(interface, true);
    int64_t napi = zovn_napi_find(control, interface->index);
    if (napi > 0)
        zovn_napi_drain((uint32_t)napi);
    zovn_interface_restore(interface);
}

/* Return whether a prepared interface was restored; if not, `problem` says why. */
static bool restore(const struct zovn_interface *interface, char *problem) {
    struct zovn_napi_control control;
    int error = try_attach(interface->index);
    if (error == -EBUSY)
        return zovn_problem_say(problem, interface->name, ZOVN_IN_USE);
    if (!error)
        error = zovn_napi_open(&control);
    if (error)
        return zovn_problem_refuse(problem, interface->name, "release it", error);
    wake(&control, interface);
    zovn_napi_close(&control);
    return true;
}

enum zovn_veth_released zovn_veth_release(const char *name, char *problem) {
    struct zovn_interface interface;
    if (!zovn_problem_look_up(&interface, name, problem))
        return ZOVN_VETH_REFUSED;
    if (!zovn_interface_is_prepared(&interface))
        return ZOVN_VETH_CLEAN;
    return restore(&interface, problem) ? ZOVN_VETH_RELEASED : ZOVN_VETH_REFUSED;
}
