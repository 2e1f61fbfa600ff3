// TCP's connections.
#include "connections.h"
#include "receiver.h"
#include "sender.h"
#include "random.h"

void connections_set_up(struct tcp *tcp, uint32_t endpoint, uint32_t host, uint32_t vm,
                        uint32_t class, uint32_t bytes) {
    uint32_t payload = tcp_payload(tcp->config);
    struct endpoint *e = &tcp->endpoints[endpoint];
    e->host = (uint16_t)host;
    e->vm = (uint8_t)vm;
    e->class = (uint8_t)class;
    e->hash = random_hash((uint64_t)tcp->config->seed << 32 | endpoint);
    e->segments = (bytes + payload - 1) / payload;
    e->tail = bytes - (e->segments - 1) * payload;
    e->window = (double)tcp->config->initial_window;
    e->threshold = (double)tcp->config->window;
}

void connections_receive(struct tcp *tcp, uint32_t index) {
    struct packet packet = tcp->network->packets.all[index];
    packets_free(&tcp->network->packets, index);
    tcp->counts.received++;
    tcp->endpoints[packet.endpoint].heard_ps = tcp_now(tcp);
    sender_acknowledged(tcp, packet.endpoint, &packet);
    if (packet.has_data)
        receiver_take(tcp, packet.endpoint, &packet);
}
