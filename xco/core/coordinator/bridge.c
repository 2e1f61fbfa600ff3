// Addresses behind this host's bridge: follows the kernel's forwarding table; part of the
// coordinator's shell.
//
// The bridge is the one that the gated interface is a port of. The addresses learnt on its other
// ports, and its own, are behind this host; those learnt on the gated port are not.
#include "coordinator/bridge.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coordinator/background.h"
#include "coordinator/map.h"
#include "coordinator/stations.h"
#include "qdisc/answer.h"

#define HERE_ROOM 1024u
#define MESSAGE_BYTES 8192
#define LOOK_NS 1000000   // between two pieces: VMs that invent addresses must not occupy a core
#define ASK_NS 1000000000 // between two reads of the whole table

int xco_bridge_open(struct xco_coordinator *c) {
    struct xco_bridge *bridge = &c->bridge;
    struct sockaddr_nl group = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_NEIGH};
    bridge->socket = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (bridge->socket < 0 || bind(bridge->socket, (struct sockaddr *)&group, sizeof group) < 0) {
        return -errno;
    }
    return xco_place_log_init(&bridge->seen, HERE_ROOM) ? 0 : -ENOMEM;
}

// Requests the whole table; addresses that it no longer contains are gone.
static void ask(struct xco_bridge *bridge) {
    struct {
        struct nlmsghdr header;
        struct ndmsg neighbour;
    } question = {
        .header = {.nlmsg_len = sizeof question,
                   .nlmsg_type = RTM_GETNEIGH,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .neighbour = {.ndm_family = AF_BRIDGE},
    };
    xco_place_log_clear(&bridge->seen);
    bridge->again = send(bridge->socket, &question, sizeof question, 0) < 0;
    bridge->asked = !bridge->again;
}

// Returns a part of an entry of the table, or NULL.
static const struct rtattr *part_of(const struct nlmsghdr *header, uint16_t kind) {
    const size_t head = NLMSG_SPACE(sizeof(struct ndmsg));
    const size_t length = header->nlmsg_len > head ? header->nlmsg_len - head : 0;
    return xco_attribute((const char *)header + head, length, kind);
}

// Reads an entry of the table: the bridge, and the address; false: not a station's.
static bool read_entry(const struct nlmsghdr *header, uint32_t *master, struct xco_place *place) {
    const struct rtattr *bridge = part_of(header, NDA_MASTER);
    const struct rtattr *address = part_of(header, NDA_LLADDR);
    if (bridge == NULL || RTA_PAYLOAD(bridge) < sizeof *master || address == NULL ||
        RTA_PAYLOAD(address) != ETH_ALEN) {
        return false;
    }
    *place = (struct xco_place){.kind = XCO_PLACE_MAC, .vlan = XCO_ANY_VLAN};
    memcpy(master, RTA_DATA(bridge), sizeof *master);
    memcpy(place->address, RTA_DATA(address), ETH_ALEN);
    return *master != 0 && (place->address[0] & 1) == 0;
}

// An address is behind this host. `seen` has no more than the map: addresses that a VM makes up
// must not fill it, or those after them would be taken for gone.
static void enter(struct xco_coordinator *c, const struct xco_place *place) {
    xco_map_here(c, place, true);
    if (xco_place_log_find(&c->map.here, place) != XCO_NOWHERE) {
        xco_place_log_set(&c->bridge.seen, place, c->core.config.host);
    }
}

// An entry of an address is gone, or on the uplink. One that is gone may have others, in other
// VLANs, as only the whole table says.
static void leave(struct xco_coordinator *c, const struct nlmsghdr *header,
                  const struct xco_place *place) {
    if (header->nlmsg_type == RTM_DELNEIGH) {
        c->bridge.again = true;
        if (part_of(header, NDA_VLAN) != NULL) {
            return; // if there is none, the reading withdraws it
        }
    }
    xco_map_here(c, place, false);
    xco_place_log_set(&c->bridge.seen, place, XCO_NOWHERE);
}

static void take_entry(struct xco_coordinator *c, const struct nlmsghdr *header) {
    struct xco_bridge *bridge = &c->bridge;
    const struct ndmsg *entry = NLMSG_DATA(header);
    struct xco_place place;
    uint32_t master;
    if (header->nlmsg_len < NLMSG_LENGTH(sizeof *entry) || entry->ndm_family != AF_BRIDGE ||
        !read_entry(header, &master, &place)) {
        return;
    }
    const bool uplink = entry->ndm_ifindex == bridge->uplink;
    const bool permanent = (entry->ndm_state & NUD_PERMANENT) != 0; // the bridge's own address
    if (uplink && header->nlmsg_type == RTM_NEWNEIGH && bridge->index != master) {
        bridge->index = master;
        bridge->again = true; // the entries read before belong to no bridge, or to another
    }
    if (master != bridge->index) {
        return;
    }
    const bool here = (header->nlmsg_type == RTM_NEWNEIGH && (!uplink || permanent)) ||
                      xco_stations_have(c, &place);
    if (here) {
        enter(c, &place);
    } else if (xco_place_log_find(&c->map.here, &place) != XCO_NOWHERE) {
        leave(c, header, &place);
    }
}

static void forget(void *context, const struct xco_place *place) {
    if (!xco_stations_have(context, place)) {
        xco_map_here(context, place, false);
    }
}

// The whole table has been read. If it must be read again, this reading does not say what is gone.
static void end(struct xco_coordinator *c) {
    c->bridge.asked = false;
    if (!c->bridge.again) {
        xco_place_log_missing(&c->map.here, &c->bridge.seen, forget, c);
    }
}

static void take_all(struct xco_coordinator *c, const void *told, unsigned length) {
    for (const struct nlmsghdr *header = told; NLMSG_OK(header, length);
         header = NLMSG_NEXT(header, length)) {
        if (header->nlmsg_type == NLMSG_DONE && c->bridge.asked) {
            end(c);
        } else if (header->nlmsg_type == NLMSG_ERROR) {
            c->bridge.asked = false;
        } else if (header->nlmsg_type == RTM_NEWNEIGH || header->nlmsg_type == RTM_DELNEIGH) {
            take_entry(c, header);
        }
    }
}

// Reads a piece of the kernel's messages; returns their number.
static unsigned take_piece(struct xco_coordinator *c) {
    struct xco_bridge *bridge = &c->bridge;
    _Alignas(struct nlmsghdr) char told[MESSAGE_BYTES];
    unsigned taken = 0;
    for (; xco_background_goes_on(c, taken); taken++) {
        const ssize_t length = recv(bridge->socket, told, sizeof told, 0);
        if (length < 0) {
            bridge->again = bridge->again || errno == ENOBUFS; // some were lost
            break;
        }
        take_all(c, told, (unsigned)length);
    }
    return taken;
}

void xco_bridge_work(struct xco_coordinator *c, int64_t now_ns) {
    struct xco_bridge *bridge = &c->bridge;
    // without queues the VMs are where they were
    const int uplink = c->present ? (int)c->gate.tree.interface : bridge->uplink;
    if (uplink != bridge->uplink) {
        bridge->uplink = uplink;
        bridge->index = 0;
        bridge->again = true;
    }
    const unsigned taken = take_piece(c);
    if (bridge->again && !bridge->asked && now_ns >= bridge->ask_ns) {
        bridge->ask_ns = now_ns + ASK_NS;
        ask(bridge);
    }
    bridge->look_ns = taken > 0 || bridge->asked ? now_ns + LOOK_NS
                      : bridge->again            ? bridge->ask_ns
                                                 : XCO_NEVER;
    bridge->idle = bridge->look_ns == XCO_NEVER;
}
