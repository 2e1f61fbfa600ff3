// Hosts that have fallen back: the capacity that they leave to hosts that obey directives.
//
// A host that hears nothing keeps to its safe shares: of each directed link that it may cross, the
// capacity divided by the number of hosts that may (xco/topology/graph.py, safe_share_bps). So if n
// hosts may cross a link and k of them have fallen back, (n - k) / n is left.
#include "controller/engine/fallback.h"

#include <stdlib.h>

#include "controller/engine/outbox.h"

// Counts at a host and at all its ancestors.
static void add_upwards(struct xco_control *core, uint32_t host, uint32_t hosts, uint32_t fallen) {
    const struct xco_network *network = &core->network;
    for (uint32_t node = host;; node = network->parent[node]) {
        core->below[node].hosts += hosts;
        core->below[node].fallen += fallen;
        if (network->parent[node] == node) {
            return;
        }
    }
}

bool xco_fallen_init(struct xco_control *core) {
    const struct xco_network *network = &core->network;
    core->below = calloc((size_t)network->hosts + network->switches, sizeof *core->below);
    for (uint32_t host = 0; core->below != NULL && host < network->hosts; host++) {
        add_upwards(core, host, 1, 0);
    }
    return core->below != NULL;
}

void xco_fallen_note(struct xco_control *core, uint32_t host, bool fallen) {
    struct xco_peer *peer = core->peers[host];
    if (peer->fallen == fallen) {
        return;
    }
    peer->fallen = fallen;
    const uint32_t more = fallen ? 1 : UINT32_MAX; // modulo 2^32: one less
    core->fallen += more;
    add_upwards(core, host, 0, more);
    xco_control_dirty(core, 0);
}

// Returns what is left of a rate granted for the whole directed link, rounded down. Where all have
// fallen back, hosts that still hear us share what one of them may use.
uint64_t xco_fallen_leave(const struct xco_control *core, uint32_t link, uint64_t rate_bps) {
    const struct xco_network *network = &core->network;
    const struct xco_tree_link *ends = &network->links[link >> 1];
    const uint32_t child = network->depth[ends->a] > network->depth[ends->b] ? ends->a : ends->b;
    const struct xco_below *below = &core->below[child];
    const bool up = network->uplink[child] == link;
    const uint64_t hosts = up ? below->hosts : network->hosts - below->hosts;
    const uint64_t fallen = up ? below->fallen : core->fallen - below->fallen;
    if (fallen == 0) {
        return rate_bps;
    }
    const uint64_t others = hosts > fallen ? hosts - fallen : 1;
    return rate_bps / hosts * others + rate_bps % hosts * others / hosts;
}

uint64_t xco_fallen_told(const struct xco_control *core, const struct xco_grant *grant) {
    uint32_t path[XCO_PATH_MAX];
    const size_t length = xco_network_path(&core->network, grant->host, grant->destination, path);
    uint64_t rate = grant->rate_bps;
    for (size_t i = 0; i < length; i++) {
        const uint64_t left = xco_fallen_leave(core, path[i], grant->rate_bps);
        rate = left < rate ? left : rate;
    }
    return xco_control_paced(core, rate);
}
