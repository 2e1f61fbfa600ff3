/* Whole frames from an interface, with the VLAN tag that the kernel takes out of them. */
#include "tagged.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "common.h"

#define ADDRESSES_BYTES 12
#define SOCKET_BYTES (64 << 20)

int tagged_socket(const char *interface) {
    int made = frame_socket(interface);
    set_option(made, SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BYTES);
    set_option(made, SOL_PACKET, PACKET_AUXDATA, 1);
    set_option(made, SOL_SOCKET, SO_TIMESTAMPNS, 1);
    return made;
}

/* Put the tag back; return the frame's begin. */
static char *put_tag_back(char *data, size_t *length, const struct tpacket_auxdata *found) {
    uint16_t tag[] = {htons(found->tp_vlan_tpid), htons(found->tp_vlan_tci)};
    memmove(data - TAG_BYTES, data, ADDRESSES_BYTES);
    memcpy(data - TAG_BYTES + ADDRESSES_BYTES, tag, TAG_BYTES);
    *length += TAG_BYTES;
    return data - TAG_BYTES;
}

/* Return how long ago an instant of the kernel's clock was; 0 if that clock was set back. */
static uint64_t ago_ns(const struct timespec *then) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t seconds = now.tv_sec - then->tv_sec;
    int64_t ago = seconds * (int64_t)NS_PER_S + now.tv_nsec - then->tv_nsec;
    return ago > 0 ? (uint64_t)ago : 0;
}

/* Find the tag and the instant that come with a frame. */
static void read_control(struct msghdr *message, struct tpacket_auxdata *tag,
                         struct timespec *came) {
    for (struct cmsghdr *each = CMSG_FIRSTHDR(message); each != NULL;
         each = CMSG_NXTHDR(message, each)) {
        if (each->cmsg_level == SOL_PACKET && each->cmsg_type == PACKET_AUXDATA) {
            memcpy(tag, CMSG_DATA(each), sizeof *tag);
        } else if (each->cmsg_level == SOL_SOCKET && each->cmsg_type == SCM_TIMESTAMPNS) {
            memcpy(came, CMSG_DATA(each), sizeof *came);
        }
    }
}

char *tagged_receive_late(int in, struct tagged_room *room, size_t *length, uint64_t *waited_ns) {
    union {
        struct cmsghdr header;
        char
            bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata)) + CMSG_SPACE(sizeof(struct timespec))];
    } control;
    struct iovec part = {room->bytes + TAG_BYTES, FRAME_MAX};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t received = recvmsg(in, &message, MSG_TRUNC); /* returns the frame's own length */
    if (received <= 0) {
        return NULL;
    }
    struct tpacket_auxdata found = {0};
    struct timespec came = {.tv_sec = INT32_MAX};
    *length = (size_t)received;
    read_control(&message, &found, &came);
    *waited_ns = ago_ns(&came);
    bool tagged = (found.tp_status & TP_STATUS_VLAN_VALID) != 0;
    return tagged ? put_tag_back(part.iov_base, length, &found) : part.iov_base;
}

uint64_t tagged_missed(int in) {
    struct tpacket_stats found;
    socklen_t size = sizeof found;
    int failed = getsockopt(in, SOL_PACKET, PACKET_STATISTICS, &found, &size);
    return failed ? 0 : found.tp_drops;
}
