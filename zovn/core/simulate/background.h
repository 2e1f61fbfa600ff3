// Background traffic: each VM sends UDP flows to random VMs, one after the other.
#ifndef BACKGROUND_H
#define BACKGROUND_H

#include "config.h"
#include "network.h"
#include "random.h"
#include "topology.h"

struct sender_vm {
    uint32_t hash;
    uint16_t to_host;
    uint8_t to_vm, class;
    int64_t remaining; // bytes of its flow
};

struct background {
    const struct config *config;
    const struct topology *topology;
    struct network *network;
    struct random random;
    struct sender_vm *vms;
    bool stopped;
    uint64_t flows, sent, received, received_bytes;
    int64_t stopped_ps;         // when it was stopped
    uint64_t bytes_when_stopped; // received until then
};

void background_start(struct background *background);

// Handle EVENT_BACKGROUND.
void background_next_flow(struct background *background, uint32_t vm);

// Send a given flow of datagrams.
void background_flow(struct background *background, const struct flow *flow);

// One of its datagrams has left the VM, or has arrived. `background` is void for network.h.
void background_sent(void *background, uint32_t vm);
void background_received(struct background *background, uint32_t packet);

// No more flows: the present ones end.
void background_stop(struct background *background);

#endif
