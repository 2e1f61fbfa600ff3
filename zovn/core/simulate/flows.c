// Flows that the input names one by one: each has its own connection.
#include "flows.h"
#include "connections.h"
#include "memory.h"
#include "sender.h"

uint32_t flows_endpoints(const struct config *config) {
    return 2 * config->flow_count;
}

static void set_up(struct flows *flows, uint32_t at) {
    const struct flow *flow = &flows->tcp->config->flows[at];
    uint32_t sender = flows->first_endpoint + 2 * at, class = (uint32_t)flow->class;
    connections_set_up(flows->tcp, sender, (uint32_t)flow->source_host, (uint32_t)flow->source_vm,
                       class, (uint32_t)flow->bytes);
    connections_set_up(flows->tcp, sender + 1, (uint32_t)flow->host, (uint32_t)flow->vm, class, 1);
}

void flows_start(struct flows *flows) {
    const struct config *config = flows->tcp->config;
    flows->done_ps = memory_new(config->flow_count, sizeof *flows->done_ps);
    for (uint32_t at = 0; at < config->flow_count; at++) {
        flows->done_ps[at] = -1;
        flows->left += !config->flows[at].datagrams;
        set_up(flows, at);
        events_add(&flows->tcp->network->events, config->flows[at].start_ps, EVENT_FLOW, at, 0);
    }
}

void flows_begin(struct flows *flows, uint32_t at) {
    const struct flow *flow = &flows->tcp->config->flows[at];
    if (flow->datagrams)
        background_flow(flows->background, flow);
    else
        sender_write(flows->tcp, flows->first_endpoint + 2 * at);
}

void flows_on_message(struct flows *flows, uint32_t endpoint) {
    uint32_t at = (endpoint - flows->first_endpoint) / 2;
    flows->done_ps[at] = tcp_now(flows->tcp);
    flows->left--;
}
