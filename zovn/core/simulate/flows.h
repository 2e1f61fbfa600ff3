// Flows that the input names one by one.
#ifndef FLOWS_H
#define FLOWS_H

#include "background.h"
#include "tcp.h"

struct flows {
    struct tcp *tcp;
    struct background *background;
    uint32_t first_endpoint;
    int64_t *done_ps; // -1 while it runs; datagrams stay at -1
    uint32_t left;    // TCP flows that are not complete
};

uint32_t flows_endpoints(const struct config *config);

void flows_start(struct flows *flows);

// Handle EVENT_FLOW.
void flows_begin(struct flows *flows, uint32_t flow);

void flows_on_message(struct flows *flows, uint32_t endpoint);

#endif
