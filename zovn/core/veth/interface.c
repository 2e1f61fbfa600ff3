/* The host's end of a veth: what it is, and what the port changes of it. */
#include "veth/interface.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/ethtool.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>

#include "veth/netlink.h"

/* Handles of the port's queue, 7a70: to 7a73:, say which offloads were on. */
enum { HANDLE = 0x7a700000, SEGMENTED = 0x10000, JOINED = 0x20000, NO_QUEUE = -1 };

static int control(const struct zovn_interface *interface, unsigned long call,
                   struct ifreq *request) {
    int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (any < 0)
        return -errno;
    memcpy(request->ifr_name, interface->name, IF_NAMESIZE);
    int error = ioctl(any, call, request) ? -errno : 0;
    close(any);
    return error;
}

static int ethtool(const struct zovn_interface *interface, void *command) {
    struct ifreq request = {.ifr_data = command};
    return control(interface, SIOCETHTOOL, &request);
}

static int check_kind(const struct zovn_interface *interface) {
    struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
    int error = ethtool(interface, &driver);
    return error ? error : strcmp(driver.driver, "veth") != 0 ? -ENOTSUP : 0;
}

int zovn_interface_look_up(struct zovn_interface *interface, const char *name) {
    *interface = (struct zovn_interface){.index = if_nametoindex(name)};
    if (!interface->index)
        return -ENODEV;
    snprintf(interface->name, sizeof interface->name, "%s", name);
    struct ifreq request;
    int error = control(interface, SIOCGIFMTU, &request);
    interface->mtu = (uint32_t)request.ifr_mtu;
    if (!error)
        error = control(interface, SIOCGIFFLAGS, &request);
    interface->up = request.ifr_flags & IFF_UP;
    return error ? error : check_kind(interface);
}

int zovn_interface_join(const struct zovn_interface *interface, bool joins) {
    struct ethtool_value value = {.cmd = ETHTOOL_SGRO, .data = joins};
    return ethtool(interface, &value);
}

static int set_segmentation(const struct zovn_interface *interface, bool on) {
    struct ethtool_value value = {.cmd = ETHTOOL_STSO, .data = on};
    return ethtool(interface, &value);
}

static int ask_queue(const struct zovn_interface *interface, uint16_t type, uint16_t flags,
                     uint32_t handle) {
    static const char KIND[] = "pfifo";
    struct tcmsg queue = {
        .tcm_ifindex = (int)interface->index, .tcm_parent = TC_H_ROOT, .tcm_handle = handle};
    struct zovn_request request;
    zovn_request_begin(&request, type, (uint16_t)(NLM_F_ACK | flags), &queue, sizeof queue);
    zovn_request_add(&request, TCA_KIND, KIND, sizeof KIND);
    int netlink = zovn_netlink_open(NETLINK_ROUTE, 0);
    if (netlink < 0)
        return netlink;
    int error = zovn_request_send(netlink, &request, NULL, NULL);
    close(netlink);
    return error;
}

/* Return which offloads the port's queue says were on, or NO_QUEUE. */
static int find_queue(const struct zovn_interface *interface) {
    for (int were_on = 0; were_on <= (SEGMENTED | JOINED); were_on += SEGMENTED)
        if (!ask_queue(interface, RTM_GETQDISC, 0, HANDLE | (uint32_t)were_on))
            return were_on;
    return NO_QUEUE;
}

static int add_queue(const struct zovn_interface *interface) {
    struct ethtool_value segments = {.cmd = ETHTOOL_GTSO}, joins = {.cmd = ETHTOOL_GGRO};
    int error = ethtool(interface, &segments);
    if (!error)
        error = ethtool(interface, &joins);
    if (error)
        return error;
    uint32_t handle = HANDLE | (segments.data ? SEGMENTED : 0) | (joins.data ? JOINED : 0);
    return ask_queue(interface, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, handle);
}

int zovn_interface_prepare(const struct zovn_interface *interface) {
    int error = zovn_interface_is_prepared(interface) ? 0 : add_queue(interface);
    if (!error)
        error = set_segmentation(interface, false);
    return error ? error : zovn_interface_join(interface, false);
}

bool zovn_interface_is_prepared(const struct zovn_interface *interface) {
    return find_queue(interface) != NO_QUEUE;
}

void zovn_interface_restore(const struct zovn_interface *interface) {
    int were_on = find_queue(interface);
    if (were_on == NO_QUEUE)
        return;
    set_segmentation(interface, were_on & SEGMENTED);
    zovn_interface_join(interface, were_on & JOINED);
    ask_queue(interface, RTM_DELQDISC, 0, HANDLE | (uint32_t)were_on);
}
