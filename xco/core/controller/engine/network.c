// Roots the spanning tree and walks paths in it by parent pointers.
#include "controller/engine/network.h"

#include <stdlib.h>

// The links at each node, as one array with offsets.
struct adjacency {
    uint32_t *first; // nodes + 1
    uint32_t *away;  // directed links that leave the node
};

static uint32_t tail(const struct xco_network *network, uint32_t directed) {
    const struct xco_tree_link *link = &network->links[directed >> 1];
    return (directed & 1) != 0 ? link->b : link->a;
}

static void fill_adjacency(const struct xco_network *network, size_t nodes, size_t count,
                           struct adjacency *adjacency) {
    for (uint32_t directed = 0; directed < 2 * count; directed++) {
        adjacency->first[tail(network, directed) + 1]++;
    }
    for (size_t node = 0; node < nodes; node++) {
        adjacency->first[node + 1] += adjacency->first[node];
    }
    for (uint32_t directed = 0; directed < 2 * count; directed++) {
        adjacency->away[adjacency->first[tail(network, directed)]++] = directed;
    }
    for (size_t node = nodes; node > 0; node--) { // filling has moved every offset one on
        adjacency->first[node] = adjacency->first[node - 1];
    }
    adjacency->first[0] = 0;
}

// Breadth first from the last node; returns the number of nodes reached.
static size_t grow(struct xco_network *network, size_t nodes, const struct adjacency *adjacency,
                   uint32_t *order) {
    const uint32_t root = (uint32_t)(nodes - 1);
    network->parent[root] = root;
    order[0] = root;
    size_t reached = 1;
    for (size_t next = 0; next < reached; next++) {
        const uint32_t node = order[next];
        for (uint32_t i = adjacency->first[node]; i < adjacency->first[node + 1]; i++) {
            const uint32_t neighbour = tail(network, adjacency->away[i] ^ 1u);
            if (network->parent[neighbour] != XCO_NONE) {
                continue;
            }
            network->parent[neighbour] = node;
            network->uplink[neighbour] = adjacency->away[i] ^ 1u;
            network->depth[neighbour] = network->depth[node] + 1;
            order[reached++] = neighbour;
        }
    }
    return reached;
}

static const char *check_links(const struct xco_network *network, size_t nodes, size_t count) {
    if (network->hosts == 0 || count + 1 != nodes) {
        return "a tree has one link less than nodes";
    }
    for (size_t i = 0; i < count; i++) {
        if (network->links[i].a >= nodes || network->links[i].b >= nodes) {
            return "a link ends at no node";
        }
        if (network->links[i].capacity_bps == 0) {
            return "a link has no capacity";
        }
    }
    return NULL;
}

static const char *check_depth(const struct xco_network *network) {
    for (uint32_t host = 0; host < network->hosts; host++) {
        if (2 * network->depth[host] > XCO_PATH_MAX) {
            return "a path is longer than 64 links";
        }
    }
    return NULL;
}

static const char *root_tree(struct xco_network *network, size_t nodes, size_t count) {
    struct adjacency adjacency = {calloc(nodes + 2, sizeof(uint32_t)),
                                  calloc(2 * count + 1, sizeof(uint32_t))};
    uint32_t *order = calloc(nodes, sizeof *order);
    const char *problem = "out of memory";
    if (adjacency.first != NULL && adjacency.away != NULL && order != NULL) {
        fill_adjacency(network, nodes, count, &adjacency);
        problem = grow(network, nodes, &adjacency, order) == nodes ? check_depth(network)
                                                                   : "not one connected tree";
    }
    free(adjacency.first);
    free(adjacency.away);
    free(order);
    return problem;
}

const char *xco_network_build(struct xco_network *network, uint32_t hosts, uint32_t switches,
                              struct xco_tree_link *links, size_t count) {
    const size_t nodes = (size_t)hosts + switches;
    *network = (struct xco_network){hosts, switches, links, NULL, NULL, NULL};
    const char *problem = check_links(network, nodes, count);
    if (problem == NULL) {
        network->parent = malloc(nodes * sizeof(uint32_t));
        network->uplink = calloc(nodes, sizeof(uint32_t));
        network->depth = calloc(nodes, sizeof(uint32_t));
        problem = "out of memory";
        if (network->parent != NULL && network->uplink != NULL && network->depth != NULL) {
            for (size_t node = 0; node < nodes; node++) {
                network->parent[node] = XCO_NONE;
            }
            problem = root_tree(network, nodes, count);
        }
    }
    if (problem != NULL) {
        xco_network_free(network);
    }
    return problem;
}

void xco_network_free(struct xco_network *network) {
    free(network->links);
    free(network->parent);
    free(network->uplink);
    free(network->depth);
    *network = (struct xco_network){0};
}

uint32_t xco_network_directed(const struct xco_network *network) {
    return 2 * (network->hosts + network->switches - 1);
}

uint64_t xco_network_capacity(const struct xco_network *network, uint32_t directed) {
    return network->links[directed >> 1].capacity_bps;
}

uint64_t xco_network_host_rate(const struct xco_network *network, uint32_t host) {
    return xco_network_capacity(network, network->uplink[host]);
}

size_t xco_network_path(const struct xco_network *network, uint32_t source, uint32_t destination,
                        uint32_t path[XCO_PATH_MAX]) {
    size_t length = 0;
    while (source != destination && length < XCO_PATH_MAX) {
        if (network->depth[source] >= network->depth[destination]) {
            path[length++] = network->uplink[source];
            source = network->parent[source];
        } else {
            path[length++] = network->uplink[destination] ^ 1u;
            destination = network->parent[destination];
        }
    }
    return length;
}

bool xco_network_crosses(const struct xco_network *network, uint32_t source, uint32_t destination,
                         uint32_t link) {
    uint32_t path[XCO_PATH_MAX];
    const size_t length = xco_network_path(network, source, destination, path);
    for (size_t i = 0; i < length; i++) {
        if (path[i] == link) {
            return true;
        }
    }
    return false;
}
