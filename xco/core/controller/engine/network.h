// The network in the controller's loop: the spanning tree, and the paths in it.
#ifndef XCO_CONTROLLER_ENGINE_NETWORK_H
#define XCO_CONTROLLER_ENGINE_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/schedule.h"

#define XCO_PATH_MAX 64 // most directed links between any two hosts

// Nodes are hosts first, then switches. Directed links are 2*i (a to b) and 2*i+1 (b to a), where i
// is the link's index here, which may differ from its index in the topology file.
struct xco_network {
    uint32_t hosts;
    uint32_t switches;
    struct xco_tree_link *links; // hosts + switches - 1
    uint32_t *parent; // of each node; the root is its own
    uint32_t *uplink; // directed link from each node to its parent
    uint32_t *depth; // of each node, root 0
};

// Builds the tree from its links and takes ownership of them; NULL, or the error (then everything
// is freed).
const char *xco_network_build(struct xco_network *network, uint32_t hosts, uint32_t switches,
                              struct xco_tree_link *links, size_t count);
void xco_network_free(struct xco_network *network);

uint32_t xco_network_directed(const struct xco_network *network); // number of directed links
uint64_t xco_network_capacity(const struct xco_network *network, uint32_t directed); // bits/s
uint64_t xco_network_host_rate(const struct xco_network *network, uint32_t host); // C_x, bits/s

// P_sd (paper, section 3.2.1): writes the directed links between two hosts, in no particular order,
// and returns their number.
size_t xco_network_path(const struct xco_network *network, uint32_t source, uint32_t destination,
                        uint32_t path[XCO_PATH_MAX]);

// Whether the path from a host to another contains this directed link.
bool xco_network_crosses(const struct xco_network *network, uint32_t source, uint32_t destination,
                         uint32_t link);

#endif
