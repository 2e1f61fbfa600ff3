/* A veth pair in the calling thread's network namespace, for the probe. */
#include "veth/pair.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/rtnetlink.h>

#include "veth/interface.h"
#include "veth/netlink.h"

static int add_pair(void) {
    static const char NAME[] = ZOVN_PAIR_HOST;
    const struct {
        struct nlattr kind;
        char name[8];
    } what = {{sizeof what.kind + sizeof "veth", IFLA_INFO_KIND}, "veth"};
    struct ifinfomsg any = {.ifi_family = AF_UNSPEC};
    struct zovn_request request;
    zovn_request_begin(&request, RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &any,
                       sizeof any);
    zovn_request_add(&request, IFLA_IFNAME, NAME, sizeof NAME);
    zovn_request_add(&request, IFLA_LINKINFO, &what, sizeof what);
    int netlink = zovn_netlink_open(NETLINK_ROUTE, 0);
    if (netlink < 0)
        return netlink;
    int error = zovn_request_send(netlink, &request, NULL, NULL);
    close(netlink);
    return error;
}

static int set_up(const char *name, uint32_t queue) {
    struct ifreq request = {.ifr_qlen = (int)queue};
    int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (any < 0)
        return -errno;
    strncpy(request.ifr_name, name, IF_NAMESIZE - 1);
    int error = ioctl(any, SIOCSIFTXQLEN, &request) ? -errno : 0;
    request.ifr_flags = IFF_UP;
    if (!error)
        error = ioctl(any, SIOCSIFFLAGS, &request) ? -errno : 0;
    close(any);
    return error;
}

int zovn_pair_make(uint32_t queue) {
    struct zovn_interface container;
    int error = add_pair();
    if (!error)
        error = set_up(ZOVN_PAIR_HOST, queue);
    if (!error)
        error = set_up(ZOVN_PAIR_CONTAINER, queue);
    if (!error)
        error = zovn_interface_look_up(&container, ZOVN_PAIR_CONTAINER);
    return error ? error : zovn_interface_prepare(&container);
}
