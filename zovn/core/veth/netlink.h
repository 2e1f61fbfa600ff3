/* Requests to the kernel over netlink: one message, and the answers to it. */
#ifndef ZOVN_VETH_NETLINK_H
#define ZOVN_VETH_NETLINK_H

#include <stddef.h>
#include <stdint.h>

#include <linux/netlink.h>

enum { ZOVN_NETLINK_ROOM = 512 };

struct zovn_request {
    _Alignas(NLMSG_ALIGNTO) uint8_t bytes[ZOVN_NETLINK_ROOM];
    size_t used;
};

/* Return a socket, or a negative errno. `groups`: of multicast messages that it gets. */
int zovn_netlink_open(int protocol, uint32_t groups);

/* Begin a request with the family's own header. */
void zovn_request_begin(struct zovn_request *request, uint16_t type, uint16_t flags,
                        const void *header, size_t length);
void zovn_request_add(struct zovn_request *request, uint16_t kind, const void *value,
                      size_t length);

/* Send a request, and call `answer`, which may be NULL, for each answer until the kernel ends them. Return 0,
 * or the kernel's refusal as a negative errno. */
int zovn_request_send(int netlink, const struct zovn_request *request,
                      void (*answer)(const struct nlmsghdr *message, void *context), void *context);

/* Return an attribute's value behind a header of `header` bytes, or NULL. */
const void *zovn_attribute(const struct nlmsghdr *message, size_t header, uint16_t kind,
                           size_t least);

/* Read all messages that wait; return whether there were any. */
int zovn_netlink_drain(int netlink);

#endif
