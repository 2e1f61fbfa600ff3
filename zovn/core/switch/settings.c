/* Default settings, and what is wrong with others. */
#include "switch/settings.h"

#include <stddef.h>

enum { MOST_WEIGHT = 1000, MOST_ADDRESSES = 65536, MOST_PARKED = 4096 };

#define LEAST_BPS UINT64_C(1000000)
#define MOST_BPS UINT64_C(1000000000000)

void zovn_settings_default(struct zovn_settings *settings) {
    *settings = (struct zovn_settings){
        .stall_ns = 1000000000,
        .age_ns = 300000000000,
        .addresses = 64,
        .parked = 16,
        .threads = 1,
    };
    for (uint32_t i = 0; i < ZOVN_CLASSES; i++)
        settings->classes[i].weight = 1;
}

static const char *class_problem(const struct zovn_settings *settings) {
    for (uint32_t i = 0; i < ZOVN_CLASSES; i++)
        if (settings->classes[i].weight > MOST_WEIGHT)
            return "weight: at most 1000";
    for (uint32_t i = 0; i < sizeof settings->class_of_priority; i++)
        if (settings->class_of_priority[i] >= ZOVN_CLASSES)
            return "class of a priority: there are classes 0 to 7";
    for (uint32_t i = 0; i < sizeof settings->class_of_dscp; i++)
        if (settings->class_of_dscp[i] >= ZOVN_CLASSES)
            return "class of a DSCP: there are classes 0 to 7";
    return NULL;
}

const char *zovn_settings_problem(const struct zovn_settings *settings) {
    if (!settings->addresses || settings->addresses > MOST_ADDRESSES)
        return "addresses: 1 to 65536 for each port";
    if (!settings->parked || settings->parked > MOST_PARKED)
        return "parked: 1 to 4096 frames for each port";
    if (!settings->threads || settings->threads > ZOVN_MOST_THREADS)
        return "threads: 1 to 8";
    if (!settings->stall_ns || !settings->age_ns)
        return "stall, age: must be above 0";
    return class_problem(settings);
}

/* VLANs 0 and 4095 are reserved. */
static const char *vlan_problem(const struct zovn_port_settings *settings) {
    if (settings->vlan > ZOVN_MOST_VLAN)
        return "vlan: 1 to 4094, or 0 for a trunk without one";
    if (!settings->trunk && !settings->vlan)
        return "vlan: a port that is no trunk needs one";
    if (settings->trunk && (settings->vlans[0] & 1 || settings->vlans[63] >> 63))
        return "vlans: 1 to 4094";
    return NULL;
}

const char *zovn_port_problem(const struct zovn_port_settings *settings) {
    if (settings->class >= ZOVN_CLASSES)
        return "class: there are classes 0 to 7";
    if (settings->trust > ZOVN_TRUST_DSCP)
        return "trust: nothing, priority or DSCP";
    if (settings->rate_bps && (settings->rate_bps < LEAST_BPS || settings->rate_bps > MOST_BPS))
        return "rate: from 1 Mb/s to 1 Tb/s; 0: no limit";
    return vlan_problem(settings);
}
