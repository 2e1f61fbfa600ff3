// Connection to the kernel about the queues of one interface.
#include "qdisc/connection.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_packet.h>
#include <linux/netlink.h>

#define HEADERS 26u      // Ethernet with two VLAN tags and a check sequence
#define MAX_MTU 32000u   // a closed gate demands 65,000 bytes per packet
#define KICK_BYTES 60

static int open_netlink(void) {
    int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (netlink < 0) {
        return -errno;
    }
    int one = 1;
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    if (setsockopt(netlink, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof one) < 0 ||
        connect(netlink, (struct sockaddr *)&kernel, sizeof kernel) < 0) {
        int error = -errno;
        close(netlink);
        return error;
    }
    return netlink;
}

// Opens the socket for kicks: bound to the interface, receives nothing, sends to its own class.
static int open_packets(int interface) {
    int packets = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (packets < 0) {
        return -errno;
    }
    struct sockaddr_ll place = {.sll_family = AF_PACKET, .sll_ifindex = interface};
    int class = (int)XCO_CLASS_KICK;
    if (bind(packets, (struct sockaddr *)&place, sizeof place) < 0 ||
        setsockopt(packets, SOL_SOCKET, SO_PRIORITY, &class, sizeof class) < 0) {
        int error = -errno;
        close(packets);
        return error;
    }
    return packets;
}

int xco_gate_look_up(struct xco_gate *gate) {
    struct ifreq request = {0};
    memcpy(request.ifr_name, gate->name, IF_NAMESIZE);
    int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (any < 0) {
        return -errno;
    }
    int error = ioctl(any, SIOCGIFMTU, &request) < 0 ? -errno : 0;
    int mtu = request.ifr_mtu;
    close(any);
    gate->tree.interface = (int)if_nametoindex(gate->name);
    if (error != 0 || gate->tree.interface == 0) {
        return -ENODEV;
    }
    gate->tree.frame_bytes = (uint32_t)mtu + HEADERS;
    return 0;
}

static bool is_too_large(const struct xco_gate *gate) {
    return !gate->tree.paced && gate->tree.frame_bytes > MAX_MTU + HEADERS;
}

int xco_gate_open_sockets(struct xco_gate *gate) {
    gate->netlink = open_netlink();
    gate->packets = open_packets(gate->tree.interface);
    int error = gate->netlink < 0 ? gate->netlink : gate->packets < 0 ? gate->packets : 0;
    if (error != 0) {
        xco_gate_close(gate);
    }
    return error;
}

bool xco_gate_changed(const struct xco_gate *gate) {
    struct xco_gate now = {.tree = gate->tree};
    memcpy(now.name, gate->name, sizeof now.name);
    return xco_gate_look_up(&now) != 0 || now.tree.interface != gate->tree.interface ||
           now.tree.frame_bytes != gate->tree.frame_bytes;
}

int xco_gate_open(struct xco_gate *gate, const char *interface, const struct xco_tree *tree) {
    gate->netlink = gate->packets = -1;
    gate->lacking = NULL;
    gate->lost = 0;
    gate->tree = *tree;
    memset(gate->name, 0, sizeof gate->name);
    strncpy(gate->name, interface, IF_NAMESIZE - 1);
    int error = xco_gate_look_up(gate);
    if (error == 0 && is_too_large(gate)) {
        error = -EMSGSIZE;
    }
    return error == 0 ? xco_gate_open_sockets(gate) : error;
}

void xco_gate_close(struct xco_gate *gate) {
    if (gate->netlink >= 0) {
        close(gate->netlink);
    }
    if (gate->packets >= 0) {
        close(gate->packets);
    }
    gate->netlink = gate->packets = -1;
}

int xco_gate_send(struct xco_gate *gate, const struct xco_batch *batch, uint32_t *place) {
    struct xco_answers answers = {0};
    int error = xco_answers_of(gate->netlink, batch, &answers);
    if (place != NULL) {
        *place = answers.place;
    }
    return error;
}

int xco_gate_ask(struct xco_gate *gate, const struct xco_batch *questions,
                 struct xco_reading *readings, int room) {
    struct xco_answers answers = {.readings = readings, .room = room};
    int error = xco_answers_of(gate->netlink, questions, &answers);
    return error != 0 && answers.count == 0 ? error : answers.count;
}

int xco_gate_kick(struct xco_gate *gate) {
    static const uint8_t frame[KICK_BYTES] = {[12] = 0x88, [13] = 0xb5}; // for local experiments
    ssize_t sent = send(gate->packets, frame, sizeof frame, MSG_DONTWAIT);
    // ENOBUFS: dropped, as intended. ENETDOWN: nothing leaves anyway.
    return sent >= 0 || errno == ENOBUFS || errno == ENETDOWN ? 0 : -errno;
}
