// Background traffic.
#include <math.h>

#include "background.h"
#include "memory.h"

#define HEADERS 28  // IP and UDP

// Flow sizes in bytes and the share of flows up to each: web search (DCTCP, 2010). Between two
// points the logarithm is uniform.
static const struct {
    double share, bytes;
} SIZES[] = {
    {0, 6e3},     {0.15, 13e3}, {0.2, 19e3},   {0.3, 33e3},   {0.4, 53e3},  {0.53, 133e3},
    {0.6, 667e3}, {0.7, 1.3e6}, {0.8, 3.33e6}, {0.9, 6.67e6}, {0.97, 20e6}, {1, 30e6},
};

static int64_t random_size(struct random *random) {
    double share = random_unit(random);
    int at = 1;
    while (SIZES[at].share < share)
        at++;
    double part = (share - SIZES[at - 1].share) / (SIZES[at].share - SIZES[at - 1].share);
    return (int64_t)(SIZES[at - 1].bytes * pow(SIZES[at].bytes / SIZES[at - 1].bytes, part));
}

static void schedule(struct background *b, uint32_t vm) {
    if (b->config->gap_ps == 0 || b->stopped)
        return;
    double gap = random_exponential(&b->random, (double)b->config->gap_ps);
    events_add(&b->network->events, b->network->events.now_ps + (int64_t)gap, EVENT_BACKGROUND, vm,
               0);
}

void background_start(struct background *b) {
    uint32_t count = b->topology->hosts * b->topology->vms;
    b->vms = memory_new(count, sizeof *b->vms);
    for (uint32_t vm = 0; vm < count; vm++)
        schedule(b, vm);
}

static void send_datagram(struct background *b, uint32_t vm) {
    struct sender_vm *sender = &b->vms[vm];
    int64_t most = b->config->mtu - HEADERS;
    int64_t payload = sender->remaining < most ? sender->remaining : most;
    uint32_t index = packets_take(&b->network->packets);
    struct packet *packet = &b->network->packets.all[index];
    sender->remaining -= payload;
    b->sent++;
    packet->endpoint = NO_ENDPOINT;
    packet->source = vm;
    packet->to_host = sender->to_host;
    packet->to_vm = sender->to_vm;
    packet->class = sender->class;
    packet->hash = sender->hash;
    packet->length = (uint16_t)(payload + HEADERS);
    topology_send(b->topology, b->network, index);
}

// As many datagrams wait in the VM as its socket takes: send() blocks above that.
static void fill_socket(struct background *b, uint32_t vm) {
    for (int64_t at = 0; at < b->config->socket && b->vms[vm].remaining > 0; at++)
        send_datagram(b, vm);
}

void background_next_flow(struct background *b, uint32_t vm) {
    if (b->stopped)
        return;
    uint32_t vms = b->topology->hosts * b->topology->vms;
    uint32_t to = random_below(&b->random, vms - 1);
    to += to >= vm;
    struct sender_vm *sender = &b->vms[vm];
    sender->to_host = (uint16_t)(to / b->topology->vms);
    sender->to_vm = (uint8_t)(to % b->topology->vms);
    sender->class = (uint8_t)b->config->background_class;
    sender->hash = (uint32_t)random_bits(&b->random);
    sender->remaining = random_size(&b->random);
    b->flows++;
    fill_socket(b, vm);
    if (sender->remaining == 0)
        schedule(b, vm);
}

void background_flow(struct background *b, const struct flow *flow) {
    uint32_t vm = topology_vm(b->topology, (uint32_t)flow->source_host, (uint32_t)flow->source_vm);
    b->vms[vm] = (struct sender_vm){
        .to_host = (uint16_t)flow->host,
        .to_vm = (uint8_t)flow->vm,
        .class = (uint8_t)flow->class,
        .hash = (uint32_t)random_bits(&b->random),
        .remaining = flow->bytes,
    };
    b->flows++;
    fill_socket(b, vm);
}

void background_sent(void *background, uint32_t vm) {
    struct background *b = background;
    if (b->vms[vm].remaining == 0)
        return;
    send_datagram(b, vm);
    if (b->vms[vm].remaining == 0)
        schedule(b, vm);
}

void background_received(struct background *b, uint32_t index) {
    b->received++;
    b->received_bytes += b->network->packets.all[index].length - (uint64_t)HEADERS;
    packets_free(&b->network->packets, index);
}

void background_stop(struct background *b) {
    b->stopped = true;
    b->stopped_ps = b->network->events.now_ps;
    b->bytes_when_stopped = b->received_bytes;
    for (uint32_t vm = 0; vm < b->topology->hosts * b->topology->vms; vm++)
        b->vms[vm].remaining = 0;
}
