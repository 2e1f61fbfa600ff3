// The fat tree: which links there are, and over which one a packet goes on.
#ifndef TOPOLOGY_H
#define TOPOLOGY_H

#include "config.h"
#include "network.h"

struct topology {
    uint32_t vms, servers, chassis, chassis_per_pod, aggregations, cores, hosts;
    uint32_t first[PLACES]; // index of the first link of each place
    uint32_t destinations;  // queues of a VM's link for each class
};

// Make the links of a network; exits with 2 if buffers are too small to be lossless.
struct topology topology_build(struct network *network, const struct config *config);

uint32_t topology_vm(const struct topology *topology, uint32_t host, uint32_t vm);

// Queue a packet at the link of the VM that sends it.
void topology_send(const struct topology *topology, struct network *network, uint32_t packet);

// Forward a packet that arrived over a link which does not end at a VM.
void topology_forward(const struct topology *topology, struct network *network, uint32_t link,
                      uint32_t packet);

#endif
