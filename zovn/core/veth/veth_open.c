/* Opens and closes what a port to a veth needs, and follows changes of the interface. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <linux/rtnetlink.h>

#include "system/dropped.h"
#include "veth/napi_poll.h"
#include "veth/netlink.h"
#include "veth/poller.h"
#include "veth/problem.h"
#include "veth/veth_parts.h"
#include "veth/veth_port.h"

#define REST_NS UINT64_C(10000000000) /* then the kernel polls: this process has died or hangs */
enum { MOST_MTU = 3498 };             /* the kernel runs XDP with less than a page */

static bool is_usable(const struct zovn_interface *interface, char *problem) {
    if (!interface->up)
        return zovn_problem_say(problem, interface->name, "it is down; set it up");
    if (interface->mtu > MOST_MTU)
        return zovn_problem_say(problem, interface->name,
                                "its MTU is above 3498; lower that of both ends");
    return true;
}

static bool open_frames(struct zovn_veth *veth, char *problem) {
    const struct zovn_interface *interface = &veth->interface;
    veth->most = interface->mtu + ZOVN_FRAME_HEADERS;
    int error = zovn_frames_open(&veth->frames, veth->most);
    if (!error)
        error = zovn_frames_bind(&veth->frames, interface->index);
    if (error == -EBUSY)
        return zovn_problem_say(problem, interface->name, ZOVN_IN_USE);
    if (error == -EAFNOSUPPORT)
        return zovn_problem_say(problem, interface->name,
                                "the kernel has no AF_XDP (CONFIG_XDP_SOCKETS)");
    return !error ||
           zovn_problem_refuse(problem, interface->name, "share frames with the kernel", error);
}

static bool open_sockets(struct zovn_veth *veth, char *problem) {
    const char *name = veth->interface.name;
    veth->poller = zovn_poller_open(veth->interface.index);
    if (veth->poller < 0)
        return zovn_problem_refuse(problem, name, "poll it busily", veth->poller);
    veth->changes = zovn_netlink_open(NETLINK_ROUTE, RTMGRP_LINK);
    if (veth->changes < 0)
        return zovn_problem_refuse(problem, name, "follow its changes", veth->changes);
    int error = zovn_napi_open(&veth->control);
    if (error == -ENOENT)
        return zovn_problem_say(problem, name,
                                "the kernel is too old; Linux 6.16 or newer is needed");
    return !error || zovn_problem_refuse(problem, name, "control its NAPI", error);
}

static bool open_program(struct zovn_veth *veth, char *problem) {
    int error = zovn_program_load(&veth->program);
    if (!error)
        error = zovn_program_redirect(&veth->program, veth->frames.receive);
    return !error ||
           zovn_problem_refuse(problem, veth->interface.name, "load an XDP program", error);
}

static bool prepare(struct zovn_veth *veth, char *problem) {
    int error = zovn_interface_prepare(&veth->interface);
    veth->prepared = error != -EEXIST;
    if (error == -EEXIST)
        return zovn_problem_say(
            problem, veth->interface.name,
            "it has a queue (tc qdisc) that the switch would bypass; remove it");
    return !error || zovn_problem_refuse(problem, veth->interface.name, "prepare it", error);
}

/* From here on what the container sends comes to this port. */
static bool attach(struct zovn_veth *veth, char *problem) {
    const char *name = veth->interface.name;
    int error = zovn_program_attach(&veth->program, veth->interface.index);
    if (error == -EBUSY)
        return zovn_problem_say(problem, name, ZOVN_IN_USE);
    if (error == -ERANGE)
        return zovn_problem_say(problem, name,
                                "the container's MTU is above 3498; lower that of both ends");
    return !error || zovn_problem_refuse(problem, name, "attach an XDP program", error);
}

/* The kernel polls until now. If the first frame has not come, it polls once more, for that one. A
 * container whose queue a killed switch left stopped goes on. */
static bool own(struct zovn_veth *veth, char *problem) {
    int64_t napi = zovn_napi_find(&veth->control, veth->interface.index);
    if (napi == -E2BIG)
        return zovn_problem_say(
            problem, veth->interface.name,
            "it has several receive queues; set one (ethtool -L INTERFACE rx 1)");
    int error = napi > 0 ? 0 : napi < 0 ? (int)napi : -ENETDOWN;
    if (!error)
        error = zovn_napi_own(&veth->control, (uint32_t)napi, REST_NS);
    if (!error)
        zovn_napi_poll((uint32_t)napi);
    veth->napi = error ? 0 : (uint32_t)napi;
    return !error || zovn_problem_refuse(problem, veth->interface.name, "own its NAPI", error);
}

struct zovn_veth *zovn_veth_open(const char *interface, char *problem) {
    struct zovn_veth *veth = calloc(1, sizeof *veth);
    if (!veth) {
        zovn_problem_say(problem, interface, "no memory for the port");
        return NULL;
    }
    veth->poller = veth->changes = veth->control.netlink = -1;
    veth->frames.receive = veth->frames.send = -1;
    zovn_program_init(&veth->program);
    if (zovn_problem_look_up(&veth->interface, interface, problem) &&
        is_usable(&veth->interface, problem) && open_frames(veth, problem) &&
        open_sockets(veth, problem) && open_program(veth, problem) && prepare(veth, problem) &&
        attach(veth, problem) && own(veth, problem)) {
        veth->dropped_before = zovn_dropped(veth->interface.name);
        return veth;
    }
    zovn_veth_close(veth);
    return NULL;
}

/* The kernel polls again, so that the ring is not full when this NAPI goes. */
static void give_back(struct zovn_veth *veth) {
    if (veth->napi) {
        zovn_napi_own(&veth->control, veth->napi, 0);
        zovn_napi_drain(veth->napi);
    }
    zovn_program_close(&veth->program);
    zovn_interface_restore(&veth->interface);
}

void zovn_veth_close(struct zovn_veth *veth) {
    if (veth->prepared && !veth->port.fault)
        give_back(veth);
    zovn_program_close(&veth->program);
    zovn_frames_close(&veth->frames);
    zovn_napi_close(&veth->control);
    if (veth->poller >= 0)
        close(veth->poller);
    if (veth->changes >= 0)
        close(veth->changes);
    free(veth);
}

/* An interface that was down has a new NAPI, which a new poller must learn. */
static void learn_again(struct zovn_veth *veth) {
    char problem[ZOVN_VETH_PROBLEM];
    close(veth->poller);
    veth->poller = zovn_poller_open(veth->interface.index);
    veth->runs = false;
    zovn_program_expect(&veth->program);
    if (veth->poller < 0 || !own(veth, problem))
        veth->napi = 0; /* the next change tries again */
}

void zovn_veth_look(struct zovn_veth *veth) {
    if (!zovn_netlink_drain(veth->changes) && veth->napi)
        return;
    int64_t napi = zovn_napi_find(&veth->control, veth->interface.index);
    if (napi == -ENODEV)
        veth->port.fault = ZOVN_PEER_GONE;
    else if (napi > 0 && (uint32_t)napi != veth->napi)
        learn_again(veth);
}
