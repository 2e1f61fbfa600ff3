/* The kernel's poller of an interface's receive queue (NAPI), by its netdev family of netlink. */
#ifndef ZOVN_VETH_NAPI_H
#define ZOVN_VETH_NAPI_H

#include <stdint.h>

struct zovn_napi_control {
    int netlink;
    uint16_t family;
};

/* Return 0 or a negative errno; -ENOENT: the kernel has no such family (before Linux 6.8). */
int zovn_napi_open(struct zovn_napi_control *control);
void zovn_napi_close(struct zovn_napi_control *control);

/* Return the identifier of an interface's only NAPI, 0 if it has none now, or a negative errno:
 * -ENODEV: there is no such interface; -E2BIG: it has several. */
int64_t zovn_napi_find(const struct zovn_napi_control *control, uint32_t interface);

/* Leave a NAPI to who polls it busily: the kernel runs it after `rest_ns` without a poll, and as
 * usual with 0. The setting ends with the NAPI. Return 0 or a negative errno. */
int zovn_napi_own(const struct zovn_napi_control *control, uint32_t napi, uint64_t rest_ns);

#endif
