// A whole run: hands each event to the part that it is for.
#include <stdio.h>

#include "connections.h"
#include "memory.h"
#include "receiver.h"
#include "sender.h"
#include "simulation.h"

static void on_message(void *application, uint32_t endpoint) {
    struct simulation *s = application;
    if (endpoint < s->flows.first_endpoint)
        queries_on_message(&s->queries, endpoint);
    else
        flows_on_message(&s->flows, endpoint);
}

static void set_up_tcp(struct simulation *s) {
    uint32_t endpoints = queries_endpoints(&s->config);
    s->flows.first_endpoint = endpoints;
    endpoints += flows_endpoints(&s->config);
    s->tcp = (struct tcp){
        .config = &s->config,
        .topology = &s->topology,
        .network = &s->network,
        .endpoints = memory_new(endpoints, sizeof *s->tcp.endpoints),
        .on_message = on_message,
        .application = s,
    };
}

void simulation_set_up(struct simulation *s) {
    uint64_t seed = (uint64_t)s->config.seed;
    s->topology = topology_build(&s->network, &s->config);
    s->network.datagram_sent = background_sent;
    s->network.background = &s->background;
    set_up_tcp(s);
    s->background.config = &s->config;
    s->background.topology = &s->topology;
    s->background.network = &s->network;
    s->background.random.state = 2 * seed;
    background_start(&s->background);
    s->queries.tcp = &s->tcp;
    s->queries.random.state = 2 * seed + 1;
    queries_start(&s->queries);
    s->flows.tcp = &s->tcp;
    s->flows.background = &s->background;
    flows_start(&s->flows);
}

static void arrive(struct simulation *s, uint32_t link, uint32_t packet) {
    if (s->network.links[link].place != HOST_TO_VM)
        topology_forward(&s->topology, &s->network, link, packet);
    else if (s->network.packets.all[packet].endpoint == NO_ENDPOINT)
        background_received(&s->background, packet);
    else
        connections_receive(&s->tcp, packet);
}

static void handle(struct simulation *s, const struct event *event) {
    switch (event_kind(event)) {
    case EVENT_ARRIVAL:
        arrive(s, event->subject, event->detail);
        break;
    case EVENT_WAKE:
        network_wake(&s->network, event->subject);
        break;
    case EVENT_PAUSE:
        network_pause(&s->network, event->subject, event->detail);
        break;
    case EVENT_RESUME:
        network_resume(&s->network, event->subject, event->detail);
        break;
    case EVENT_RETRANSMIT:
        sender_timer(&s->tcp, event->subject);
        break;
    case EVENT_ACKNOWLEDGE:
        receiver_timer(&s->tcp, event->subject);
        break;
    case EVENT_BACKGROUND:
        background_next_flow(&s->background, event->subject);
        break;
    case EVENT_QUERY:
        queries_next(&s->queries);
        break;
    case EVENT_FLOW:
        flows_begin(&s->flows, event->subject);
        break;
    }
}

// A line for each percent of the queries, for the front end's bar.
static void report_progress(struct simulation *s) {
    uint32_t percent = s->queries.count ? 100 * s->queries.done / s->queries.count : 0;
    if (percent == s->reported)
        return;
    s->reported = percent;
    fprintf(stderr, "progress %u\n", percent);
}

// The background of queries ends with the last of them: else nothing would end.
static void after_event(struct simulation *s) {
    report_progress(s);
    if (!s->background.stopped && s->queries.count && s->queries.done == s->queries.count)
        background_stop(&s->background);
}

void simulation_run(struct simulation *s) {
    struct event event;
    while (events_next(&s->network.events, &event) && event.time_ps <= s->config.limit_ps) {
        handle(s, &event);
        s->handled++;
        after_event(s);
    }
}
