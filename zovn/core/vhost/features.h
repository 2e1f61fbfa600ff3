/* Which virtio features ports offer, and what a guest's choice means for its frames. */
#ifndef ZOVN_VHOST_FEATURES_H
#define ZOVN_VHOST_FEATURES_H

#include <stdbool.h>
#include <stdint.h>

#include "forward/options.h"

/* Features that are offered. Packed rings and IN_ORDER never are: frames complete in any order. */
uint64_t zovn_vhost_features(const struct zovn_port_options *options);

/* Protocol features that are offered. */
uint64_t zovn_vhost_protocol_features(const struct zovn_port_options *options);

/* Of the protocol features that a front end has chosen, return those that librte_vhost is to know. */
uint64_t zovn_vhost_passed_on(uint64_t chosen);

/* Offloads that a guest with these features may leave to others, and those that it accepts. */
uint32_t zovn_vhost_sends(uint64_t features);
uint32_t zovn_vhost_takes(uint64_t features);

static inline bool zovn_vhost_has(uint64_t features, uint32_t bit) {
    return features >> bit & 1;
}

#endif
