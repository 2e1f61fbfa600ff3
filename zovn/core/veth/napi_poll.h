/* Runs a NAPI once, by its identifier: no packet has to come through it first. */
#ifndef ZOVN_VETH_NAPI_POLL_H
#define ZOVN_VETH_NAPI_POLL_H

#include <stdint.h>

/* A NAPI that is deleted while its ring is full leaves the container's queue stopped for good, since only
 * a run of a NAPI wakes it. Return 0 or a negative errno; -EINVAL: before Linux 6.13. */
int zovn_napi_poll(uint32_t napi);

/* The same; then wait a moment, so that the kernel takes what the container's queue sends now. */
void zovn_napi_drain(uint32_t napi);

#endif
