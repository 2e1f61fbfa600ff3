/* Whole frames from an interface, with the VLAN tag that the kernel takes out of them. */
#include "tagged.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>

#include "common.h"

#define ADDRESSES_BYTES 12
#define SOCKET_BYTES (64 << 20)

int tagged_socket(const char *interface) {
    int made = frame_socket(interface);
    set_option(made, SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BYTES);
    set_option(made, SOL_PACKET, PACKET_AUXDATA, 1);
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

char *tagged_receive(int in, struct tagged_room *room, size_t *length) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
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
    *length = (size_t)received;
    struct cmsghdr *first = CMSG_FIRSTHDR(&message);
    struct tpacket_auxdata found = {0};
    if (first != NULL && first->cmsg_type == PACKET_AUXDATA) {
        memcpy(&found, CMSG_DATA(first), sizeof found);
    }
    bool tagged = (found.tp_status & TP_STATUS_VLAN_VALID) != 0;
    return tagged ? put_tag_back(part.iov_base, length, &found) : part.iov_base;
}

uint64_t tagged_missed(int in) {
    struct tpacket_stats found;
    socklen_t size = sizeof found;
    int failed = getsockopt(in, SOL_PACKET, PACKET_STATISTICS, &found, &size);
    return failed ? 0 : found.tp_drops;
}
