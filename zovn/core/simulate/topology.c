// Forwards packets through the fat tree: up by the hash of their flow, down to their server.
#include "topology.h"

uint32_t topology_vm(const struct topology *topology, uint32_t host, uint32_t vm) {
    return host * topology->vms + vm;
}

void topology_send(const struct topology *topology, struct network *network, uint32_t index) {
    const struct packet *packet = &network->packets.all[index];
    uint32_t queue = packet->class;
    if (topology->destinations > 1) {
        bool local = packet->to_host == packet->source / topology->vms;
        queue = queue * topology->destinations + (local ? packet->to_vm : topology->vms);
    }
    network_originate(network, topology->first[VM_TO_HOST] + packet->source, queue, index);
}

static uint32_t from_host(const struct topology *t, uint32_t host, const struct packet *packet) {
    if (packet->to_host == host)
        return t->first[HOST_TO_VM] + topology_vm(t, host, packet->to_vm);
    return t->first[HOST_TO_CHASSIS] + host;
}

static uint32_t from_chassis(const struct topology *t, uint32_t chassis,
                             const struct packet *packet) {
    if (packet->to_host / t->servers == chassis)
        return t->first[CHASSIS_TO_HOST] + packet->to_host;
    uint32_t up = packet->hash % t->aggregations;
    return t->first[CHASSIS_TO_AGGREGATION] + chassis * t->aggregations + up;
}

static uint32_t from_aggregation(const struct topology *t, uint32_t aggregation,
                                 const struct packet *packet) {
    uint32_t pod = aggregation / t->aggregations, chassis = packet->to_host / t->servers;
    if (chassis / t->chassis_per_pod == pod)
        return t->first[AGGREGATION_TO_CHASSIS] + chassis * t->aggregations +
               aggregation % t->aggregations;
    uint32_t up = packet->hash / t->aggregations % t->cores;
    return t->first[AGGREGATION_TO_CORE] + aggregation * t->cores + up;
}

static uint32_t from_core(const struct topology *t, uint32_t core, const struct packet *packet) {
    uint32_t pod = packet->to_host / t->servers / t->chassis_per_pod;
    uint32_t aggregation = pod * t->aggregations + core / t->cores;
    return t->first[CORE_TO_AGGREGATION] + aggregation * t->cores + core % t->cores;
}

static uint32_t next_link(const struct topology *t, const struct link *link,
                          const struct packet *packet) {
    switch (link->place) {
    case HOST_TO_CHASSIS:
    case AGGREGATION_TO_CHASSIS:
        return from_chassis(t, link->to, packet);
    case CHASSIS_TO_AGGREGATION:
    case CORE_TO_AGGREGATION:
        return from_aggregation(t, link->to, packet);
    case AGGREGATION_TO_CORE:
        return from_core(t, link->to, packet);
    default:
        return from_host(t, link->to, packet);
    }
}

void topology_forward(const struct topology *topology, struct network *network, uint32_t link,
                      uint32_t index) {
    const struct packet *packet = &network->packets.all[index];
    uint32_t next = next_link(topology, &network->links[link], packet);
    network_forward(network, link, next, packet->class, index);
}
