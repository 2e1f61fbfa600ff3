/* A packet socket, and the UDP port of VXLAN. */
#include "wire/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/pkt_sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/bytes.h"
#include "wire/filter.h"

enum { SOCKET_BYTES = 8 << 20, MOST_BOUND = 1 << 30, ADDRESSES_BYTES = 12 };

static const uint8_t PAUSES[6] = {0x01, 0x80, 0xc2, 0, 0, 0x01};

static bool refuse(char *problem, const char *interface, const char *what) {
    snprintf(problem, ZOVN_WIRE_PROBLEM, "%s: %s", interface, what);
    return false;
}

static bool fail(char *problem, const char *interface, const char *what) {
    snprintf(problem, ZOVN_WIRE_PROBLEM, "%s: cannot %s: %s", interface, what, strerror(errno));
    return false;
}

/* The kernel finds an MTU by name alone, and a name may become that of another interface. */
uint32_t zovn_link_mtu(const struct zovn_link *link) {
    struct ifreq request = {.ifr_ifindex = (int)link->index};
    if (ioctl(link->file, SIOCGIFNAME, &request) || ioctl(link->file, SIOCGIFMTU, &request))
        return 0;
    uint32_t mtu = (uint32_t)request.ifr_mtu;
    bool same =
        !ioctl(link->file, SIOCGIFINDEX, &request) && request.ifr_ifindex == (int)link->index;
    return same ? mtu : 0;
}

static bool look_up(struct zovn_link *link, char *problem) {
    struct ifreq request = {0};
    memcpy(request.ifr_name, link->name, IF_NAMESIZE);
    if (ioctl(link->file, SIOCGIFINDEX, &request))
        return refuse(problem, link->name, "there is no such interface in this network namespace");
    link->index = (uint32_t)request.ifr_ifindex;
    link->mtu = zovn_link_mtu(link);
    if (!link->mtu)
        return refuse(problem, link->name, "its MTU is not known");
    if (ioctl(link->file, SIOCGIFHWADDR, &request))
        return fail(problem, link->name, "read its address");
    memcpy(link->self.ethernet, request.ifr_hwaddr.sa_data, 6);
    if (ioctl(link->file, SIOCGIFFLAGS, &request))
        return fail(problem, link->name, "read its state");
    if (!(request.ifr_flags & IFF_UP))
        return refuse(problem, link->name, "it is down; set it up");
    return true;
}

/* The frames that the kernel itself sends are none from the wire. Before it is bound, the socket gets
 * none at all, so none passes the filter by. */
static bool set_up(struct zovn_link *link, char *problem) {
    const int on = 1, bytes = SOCKET_BYTES;
    struct packet_mreq pauses = {
        .mr_ifindex = (int)link->index, .mr_type = PACKET_MR_MULTICAST, .mr_alen = 6};
    struct sockaddr_ll all = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)link->index};
    memcpy(pauses.mr_address, PAUSES, sizeof PAUSES);
    if (!zovn_filter_attach(link->file) ||
        setsockopt(link->file, SOL_PACKET, PACKET_AUXDATA, &on, sizeof on) ||
        setsockopt(link->file, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) ||
        setsockopt(link->file, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &pauses, sizeof pauses) ||
        setsockopt(link->file, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) ||
        bind(link->file, (struct sockaddr *)&all, sizeof all))
        return fail(problem, link->name, "set up its packet socket");
    return true;
}

/* Frames that wait in a queue of the kernel use up their socket, and a pause must not wait for them, nor
 * for others in that queue: most queues, and xco's, know the first ones by their priority. */
static bool open_control(struct zovn_link *link, char *problem) {
    const int first = TC_PRIO_CONTROL;
    struct sockaddr_ll self = {.sll_family = AF_PACKET, .sll_ifindex = (int)link->index};
    link->control = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return (link->control >= 0 &&
            !setsockopt(link->control, SOL_SOCKET, SO_PRIORITY, &first, sizeof first) &&
            !bind(link->control, (struct sockaddr *)&self, sizeof self)) ||
           fail(problem, link->name, "open a packet socket for pauses");
}

/* What comes there has come by the packet socket; the kernel must not answer that it is closed. */
static bool reserve(struct zovn_link *link, char *problem) {
    struct sock_filter drops = BPF_STMT(BPF_RET | BPF_K, 0);
    const struct sock_fprog program = {1, &drops};
    struct sockaddr_in self = {.sin_family = AF_INET, .sin_port = htons(ZOVN_VXLAN_PORT)};
    memcpy(&self.sin_addr, link->self.address, 4);
    link->reserved = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (link->reserved < 0 ||
        setsockopt(link->reserved, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program))
        return fail(problem, link->name, "open a UDP socket");
    if (!bind(link->reserved, (struct sockaddr *)&self, sizeof self))
        return true;
    if (errno == EADDRNOTAVAIL)
        return refuse(problem, link->name, "`local` is no address of this host; add it first");
    if (errno == EADDRINUSE)
        return refuse(problem, link->name, "another program, or a vxlan device, has UDP port 4789");
    return fail(problem, link->name, "have UDP port 4789");
}

static bool has_address(int file, const uint8_t address[4]) {
    struct sockaddr_in self = {.sin_family = AF_INET};
    memcpy(&self.sin_addr, address, 4);
    return !bind(file, (struct sockaddr *)&self, sizeof self) || errno != EADDRNOTAVAIL;
}

static const char *lacks(int file, const char *interface, const uint8_t address[4]) {
    struct ifreq request = {0};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", interface);
    if (ioctl(file, SIOCGIFFLAGS, &request))
        return "does not exist";
    if (!(request.ifr_flags & IFF_UP))
        return "is down";
    return has_address(file, address) ? NULL : "does not have the address `local` yet";
}

/* Where that cannot be found out, opening the link says why. */
const char *zovn_link_missing(const char *interface, const uint8_t address[4]) {
    int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (any < 0)
        return NULL;
    const char *missing = lacks(any, interface, address);
    close(any);
    return missing;
}

bool zovn_link_open(struct zovn_link *link, const char *interface, const uint8_t address[4],
                    char *problem) {
    *link = (struct zovn_link){.file = -1, .control = -1, .reserved = -1};
    memcpy(link->self.address, address, 4);
    if (!*interface || strlen(interface) >= IF_NAMESIZE)
        return refuse(problem, interface, "no name of an interface");
    memcpy(link->name, interface, strlen(interface));
    link->file = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (link->file < 0)
        return fail(problem, interface, "open a packet socket (needs CAP_NET_RAW)");
    return look_up(link, problem) && set_up(link, problem) && open_control(link, problem) &&
           reserve(link, problem);
}

void zovn_link_close(struct zovn_link *link) {
    if (link->file >= 0)
        close(link->file);
    if (link->control >= 0)
        close(link->control);
    if (link->reserved >= 0)
        close(link->reserved);
}

/* The kernel takes a tag out of the frame. */
static void put_tag_back(struct zovn_arrival *arrival, const struct tpacket_auxdata *found) {
    arrival->bytes -= ZOVN_LINK_SPARE;
    arrival->length += ZOVN_LINK_SPARE;
    memmove(arrival->bytes, arrival->bytes + ZOVN_LINK_SPARE, ADDRESSES_BYTES);
    zovn_set_word(arrival->bytes + ADDRESSES_BYTES, found->tp_vlan_tpid);
    zovn_set_word(arrival->bytes + ADDRESSES_BYTES + 2, found->tp_vlan_tci);
}

static void finish(struct zovn_arrival *arrival, struct msghdr *message) {
    const struct cmsghdr *first = CMSG_FIRSTHDR(message);
    struct tpacket_auxdata found = {0};
    if (first && first->cmsg_type == PACKET_AUXDATA)
        memcpy(&found, CMSG_DATA(first), sizeof found);
    arrival->whole =
        !(message->msg_flags & MSG_TRUNC) && !(found.tp_status & TP_STATUS_CSUMNOTREADY);
    if (arrival->whole && found.tp_status & TP_STATUS_VLAN_VALID &&
        arrival->length >= ADDRESSES_BYTES)
        put_tag_back(arrival, &found);
}

int zovn_link_receive(struct zovn_link *link, uint8_t *room, uint32_t size,
                      struct zovn_arrival *arrival) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
    struct iovec part = {room + ZOVN_LINK_SPARE, size - ZOVN_LINK_SPARE};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    ssize_t length = recvmsg(link->file, &message, 0);
    if (length < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    *arrival = (struct zovn_arrival){.bytes = part.iov_base, .length = (uint32_t)length};
    finish(arrival, &message);
    return 1;
}

/* The kernel charges a frame more than it takes on the line, and takes one as long as there is any room:
 * one frame may be beyond the room. It doubles what it is asked for. */
uint64_t zovn_link_bound(struct zovn_link *link, uint64_t bytes, uint64_t most_bytes) {
    uint64_t room = bytes < MOST_BOUND ? bytes : MOST_BOUND;
    int asked = room > most_bytes ? (int)((room - most_bytes) / 2) : 0;
    socklen_t size = sizeof asked;
    if (setsockopt(link->file, SOL_SOCKET, SO_SNDBUFFORCE, &asked, size) ||
        getsockopt(link->file, SOL_SOCKET, SO_SNDBUF, &asked, &size))
        return 0;
    return (uint64_t)asked + most_bytes;
}

static int send_by(int file, const uint8_t *bytes, uint32_t length) {
    return send(file, bytes, length, MSG_DONTWAIT) == (ssize_t)length ? 0 : -errno;
}

int zovn_link_send(struct zovn_link *link, const uint8_t *bytes, uint32_t length) {
    return send_by(link->file, bytes, length);
}

int zovn_link_send_control(struct zovn_link *link, const uint8_t *bytes, uint32_t length) {
    return send_by(link->control, bytes, length);
}

/* The kernel then takes the socket's interface away, and says nothing. One whose own address has changed
 * must be opened again: what comes is no longer for the one that was read. */
bool zovn_link_gone(const struct zovn_link *link) {
    struct sockaddr_ll self = {0};
    socklen_t size = sizeof self;
    return getsockname(link->file, (struct sockaddr *)&self, &size) == 0 &&
           (self.sll_ifindex != (int)link->index ||
            memcmp(self.sll_addr, link->self.ethernet, sizeof link->self.ethernet) != 0);
}

/* Reading resets the kernel's count. */
void zovn_link_count(struct zovn_link *link) {
    struct tpacket_stats found;
    socklen_t size = sizeof found;
    if (!getsockopt(link->file, SOL_PACKET, PACKET_STATISTICS, &found, &size))
        link->overruns += found.tp_drops;
}
