/* Requests to the kernel over netlink: one message, and the answers to it. */
#include "veth/netlink.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_BYTES = 32768 };
static const size_t HEADER = sizeof(struct nlattr);

static size_t aligned(size_t length) {
    return (length + NLA_ALIGNTO - 1) / NLA_ALIGNTO * NLA_ALIGNTO;
}

int zovn_netlink_open(int protocol, uint32_t groups) {
    int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (netlink < 0)
        return -errno;
    struct sockaddr_nl self = {.nl_family = AF_NETLINK, .nl_groups = groups};
    if (!bind(netlink, (struct sockaddr *)&self, sizeof self))
        return netlink;
    int error = -errno;
    close(netlink);
    return error;
}

void zovn_request_begin(struct zovn_request *request, uint16_t type, uint16_t flags,
                        const void *header, size_t length) {
    memset(request, 0, sizeof *request);
    struct nlmsghdr *message = (struct nlmsghdr *)request->bytes;
    message->nlmsg_type = type;
    message->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
    memcpy(NLMSG_DATA(message), header, length);
    request->used = NLMSG_SPACE(length);
    message->nlmsg_len = (uint32_t)request->used;
}

void zovn_request_add(struct zovn_request *request, uint16_t kind, const void *value,
                      size_t length) {
    struct nlattr *attribute = (struct nlattr *)(request->bytes + request->used);
    attribute->nla_type = kind;
    attribute->nla_len = (uint16_t)(HEADER + length);
    memcpy((uint8_t *)attribute + HEADER, value, length);
    request->used += HEADER + aligned(length);
    ((struct nlmsghdr *)request->bytes)->nlmsg_len = (uint32_t)request->used;
}

const void *zovn_attribute(const struct nlmsghdr *message, size_t header, uint16_t kind,
                           size_t least) {
    size_t at = NLMSG_SPACE(header);
    while (at + HEADER <= message->nlmsg_len) {
        const struct nlattr *attribute = (const struct nlattr *)((const uint8_t *)message + at);
        if (attribute->nla_len < HEADER)
            break;
        if (attribute->nla_type == kind && attribute->nla_len >= HEADER + least)
            return (const uint8_t *)attribute + HEADER;
        at += aligned(attribute->nla_len);
    }
    return NULL;
}

/* Read one datagram's messages; return whether the answer has ended, with `*error`. */
static bool read_some(const uint8_t *bytes, size_t length,
                      void (*answer)(const struct nlmsghdr *message, void *context), void *context,
                      int *error) {
    const struct nlmsghdr *message = (const struct nlmsghdr *)bytes;
    for (; NLMSG_OK(message, length); message = NLMSG_NEXT(message, length)) {
        if (message->nlmsg_type == NLMSG_ERROR || message->nlmsg_type == NLMSG_DONE) {
            memcpy(error, NLMSG_DATA(message), sizeof *error);
            return true;
        }
        if (answer)
            answer(message, context);
    }
    return false;
}

int zovn_request_send(int netlink, const struct zovn_request *request,
                      void (*answer)(const struct nlmsghdr *message, void *context),
                      void *context) {
    _Alignas(NLMSG_ALIGNTO) uint8_t bytes[ANSWER_BYTES];
    if (send(netlink, request->bytes, request->used, 0) < 0)
        return -errno;
    int error = 0;
    for (;;) {
        ssize_t length = recv(netlink, bytes, sizeof bytes, 0);
        if (length < 0 && errno != EINTR)
            return -errno;
        if (length > 0 && read_some(bytes, (size_t)length, answer, context, &error))
            return error;
    }
}

int zovn_netlink_drain(int netlink) {
    uint8_t bytes[4096];
    int any = 0;
    /* ENOBUFS: there were more messages than the socket holds. */
    while (recv(netlink, bytes, sizeof bytes, MSG_DONTWAIT) >= 0 || errno == ENOBUFS)
        any = 1;
    return any;
}
