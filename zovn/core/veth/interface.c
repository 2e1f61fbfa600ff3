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

/* Handles of the port's queue: 7a76: and 7a77: */
enum { SEGMENTATION_WAS_OFF = 0x7a760000, SEGMENTATION_WAS_ON = 0x7a770000 };

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

static int look_up_kind(struct zovn_interface *interface) {
    struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
    struct ethtool_value joins = {.cmd = ETHTOOL_GGRO};
    int error = ethtool(interface, &driver);
    if (!error && strcmp(driver.driver, "veth") != 0)
        error = -ENOTSUP;
    if (!error)
        error = ethtool(interface, &joins);
    interface->joins = joins.data;
    return error;
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
    return error ? error : look_up_kind(interface);
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

static bool has_queue(const struct zovn_interface *interface, uint32_t handle) {
    return !ask_queue(interface, RTM_GETQDISC, 0, handle);
}

static int add_queue(const struct zovn_interface *interface) {
    struct ethtool_value segmentation = {.cmd = ETHTOOL_GTSO};
    int error = ethtool(interface, &segmentation);
    if (error)
        return error;
    return ask_queue(interface, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL,
                     segmentation.data ? SEGMENTATION_WAS_ON : SEGMENTATION_WAS_OFF);
}

int zovn_interface_prepare(const struct zovn_interface *interface) {
    int error = 0;
    if (!has_queue(interface, SEGMENTATION_WAS_ON) && !has_queue(interface, SEGMENTATION_WAS_OFF))
        error = add_queue(interface);
    return error ? error : set_segmentation(interface, false);
}

void zovn_interface_restore(const struct zovn_interface *interface) {
    if (has_queue(interface, SEGMENTATION_WAS_ON)) {
        set_segmentation(interface, true);
        ask_queue(interface, RTM_DELQDISC, 0, SEGMENTATION_WAS_ON);
    } else {
        ask_queue(interface, RTM_DELQDISC, 0, SEGMENTATION_WAS_OFF);
    }
}
