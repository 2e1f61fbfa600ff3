// The gates of one interface: made, opened and closed, asked for what waits, removed.
#include "qdisc/gate.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>

#include "qdisc/answer.h"
#include "qdisc/paced.h"
#include "qdisc/parts.h"

#define HEADERS 26u      // Ethernet with two VLAN tags and a check sequence
#define MAX_MTU 32000u   // a closed gate asks 65,000 bytes for a packet
#define KICK_BYTES 60
#define DRAIN_STEP_NS 500000
#define BURST_NS 20000

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

// Opens the socket of the kicks: bound to the interface, receives nothing, aims at its own class.
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

// Looks up index and largest frame by the name.
static int look_up(struct xco_gate *gate) {
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

// Opens the sockets on the interface that was looked up.
static int open_sockets(struct xco_gate *gate) {
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
    return look_up(&now) != 0 || now.tree.interface != gate->tree.interface ||
           now.tree.frame_bytes != gate->tree.frame_bytes;
}

int xco_gate_open(struct xco_gate *gate, const char *interface, const struct xco_tree *tree) {
    gate->netlink = gate->packets = -1;
    gate->lacking = NULL;
    gate->tree = *tree;
    memset(gate->name, 0, sizeof gate->name);
    strncpy(gate->name, interface, IF_NAMESIZE - 1);
    int error = look_up(gate);
    if (error == 0 && is_too_large(gate)) {
        error = -EMSGSIZE;
    }
    return error == 0 ? open_sockets(gate) : error;
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

static bool has_filters(struct xco_gate *gate, uint32_t direction) {
    struct xco_reading any;
    xco_batch_clear(&gate->batch);
    xco_part_ask_filters(&gate->batch, gate->tree.interface, TC_H_MAKE(TC_H_CLSACT, direction));
    return xco_gate_ask(gate, &gate->batch, &any, 1) != 0;
}

// Takes the classifier away, and the hook with it if nobody else's filter stands there.
static void unclassify(struct xco_gate *gate) {
    xco_batch_clear(&gate->batch);
    xco_tree_unclassify(&gate->batch, gate->tree.interface);
    if (xco_gate_send(gate, &gate->batch, NULL) == 0 && !has_filters(gate, TC_H_MIN_INGRESS) &&
        !has_filters(gate, TC_H_MIN_EGRESS)) {
        xco_batch_clear(&gate->batch);
        xco_part_remove_clsact(&gate->batch, gate->tree.interface);
        xco_gate_send(gate, &gate->batch, NULL);
    }
}

// Puts the classifier before the tree. One that a killed coordinator left went with its tree.
static int classify(struct xco_gate *gate) {
    xco_batch_clear(&gate->batch);
    xco_part_clsact(&gate->batch, gate->tree.interface);
    int error = xco_gate_send(gate, &gate->batch, NULL);
    if (error != 0 && error != -EEXIST) {
        gate->lacking = "clsact";
        return error;
    }
    xco_batch_clear(&gate->batch);
    xco_tree_classify(&gate->batch, &gate->tree);
    int refused = xco_gate_send(gate, &gate->batch, NULL);
    if (refused != 0 && error == 0) {
        xco_batch_clear(&gate->batch);
        xco_part_remove_clsact(&gate->batch, gate->tree.interface);
        xco_gate_send(gate, &gate->batch, NULL);
    }
    return refused;
}

int xco_gate_remove(struct xco_gate *gate) {
    unclassify(gate);
    xco_batch_clear(&gate->batch);
    xco_tree_remove(&gate->batch, gate->tree.interface);
    return xco_gate_send(gate, &gate->batch, NULL);
}

// Builds the tree of queues; `foreign` where another root stands there.
static int build(struct xco_gate *gate, bool *foreign) {
    uint32_t place = 0;
    xco_batch_clear(&gate->batch);
    xco_tree_build(&gate->batch, &gate->tree);
    int error = xco_gate_send(gate, &gate->batch, &place);
    *foreign = error == -EEXIST && place == 1;
    if (error != 0 && !*foreign) {
        gate->lacking = xco_tree_part(&gate->batch, place);
    }
    return error;
}

int xco_gate_make(struct xco_gate *gate) {
    // refused unless the root has our handle: then there is nothing of ours to remove
    bool foreign = false;
    int error = xco_gate_remove(gate);
    if (error == -EPERM || error == -ENODEV) {
        return error;
    }
    error = gate->tree.paced ? xco_gate_build_paced(gate, &foreign) : build(gate, &foreign);
    if (foreign) {
        return error;
    }
    if (error == 0 && gate->tree.classify != 0) {
        error = classify(gate);
    }
    if (error != 0) {
        xco_gate_remove(gate);
    }
    return error;
}

int xco_gate_kick(struct xco_gate *gate) {
    static const uint8_t frame[KICK_BYTES] = {[12] = 0x88, [13] = 0xb5}; // for local experiments
    ssize_t sent = send(gate->packets, frame, sizeof frame, MSG_DONTWAIT);
    // ENOBUFS: dropped, as it is meant to be. ENETDOWN: nothing leaves anyway.
    return sent >= 0 || errno == ENOBUFS || errno == ENETDOWN ? 0 : -errno;
}

// Asks for the root; 1 and its reading, 0 if the kernel tells of none, or a negative errno.
static int ask_root(struct xco_gate *gate, struct xco_reading *root) {
    struct xco_batch question;
    xco_batch_clear(&question);
    xco_tree_ask_root(&question, gate->tree.interface);
    return xco_gate_ask(gate, &question, root, 1);
}

static int ask_classifier(struct xco_gate *gate) {
    struct xco_reading filter;
    xco_batch_clear(&gate->batch);
    xco_tree_ask_classifier(&gate->batch, gate->tree.interface);
    return xco_gate_ask(gate, &gate->batch, &filter, 1);
}

static bool is_ours(const struct xco_reading *root) {
    return strcmp(root->kind, "htb") == 0 || strcmp(root->kind, "mq") == 0 ||
           strcmp(root->kind, "fq") == 0;
}

int xco_gate_stands(struct xco_gate *gate) {
    struct xco_reading root = {0};
    int count = ask_root(gate, &root);
    if (count < 0) {
        return count;
    }
    bool stands = count == 1 && root.handle == XCO_ROOT && is_ours(&root);
    return stands && (gate->tree.classify == 0 || ask_classifier(gate) == 1);
}

// Opens all gates that there are, which fq does not have, and waits until nothing waits, or patience
// ends. Behind fq packets depart at their own times.
static void drain(struct xco_gate *gate, uint64_t line_bps, int64_t patience_ns) {
    struct xco_batch opening;
    struct xco_reading root = {0};
    bool empty = ask_root(gate, &root) != 1, tree = strcmp(root.kind, "htb") == 0;
    xco_batch_clear(&opening);
    for (unsigned k = 0; tree && k < XCO_GATES; k++) {
        xco_tree_set_gate(&opening, &gate->tree, k, &(struct xco_opening){line_bps, 0, false});
    }
    xco_gate_send(gate, &opening, NULL); // refused for those that do not exist
    while (patience_ns > 0 && !empty) {
        if (tree) {
            xco_gate_kick(gate);
        }
        nanosleep(&(struct timespec){.tv_nsec = DRAIN_STEP_NS}, NULL);
        patience_ns -= DRAIN_STEP_NS;
        empty = ask_root(gate, &root) == 1 && root.backlog_bytes == 0;
    }
}

// Sets free an interface that was looked up, whatever its frames are by now.
static int release(struct xco_gate *gate, uint64_t line_bps, int64_t patience_ns) {
    int error = open_sockets(gate);
    if (error != 0) {
        return error == -ENODEV ? 0 : error; // it went since it was looked up
    }
    int stands = xco_gate_stands(gate);
    if (stands > 0) {
        drain(gate, line_bps, patience_ns);
        error = xco_gate_remove(gate);
    }
    xco_gate_close(gate);
    return stands < 0 ? stands : error;
}

int xco_gate_release(const char *interface, uint64_t line_bps, int64_t patience_ns) {
    struct xco_gate gate = {.tree.burst_ns = BURST_NS};
    strncpy(gate.name, interface, IF_NAMESIZE - 1);
    int error = look_up(&gate); // the tree went with the interface
    return error == -ENODEV ? 0 : error != 0 ? error : release(&gate, line_bps, patience_ns);
}

int xco_gate_release_index(int interface, uint64_t line_bps, int64_t patience_ns) {
    char name[IF_NAMESIZE];
    if (if_indextoname((unsigned)interface, name) == NULL) {
        return errno == ENXIO ? 0 : -errno;
    }
    return xco_gate_release(name, line_bps, patience_ns);
}
