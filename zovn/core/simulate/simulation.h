// A whole run: the network, TCP, and the traffic.
#ifndef SIMULATION_H
#define SIMULATION_H

#include "background.h"
#include "flows.h"
#include "queries.h"

struct simulation {
    struct config config;
    struct network network;
    struct topology topology;
    struct tcp tcp;
    struct background background;
    struct queries queries;
    struct flows flows;
    uint64_t handled; // events
    uint32_t reported;
};

// Set up what the configuration says; it stays with the caller, as the simulation does.
void simulation_set_up(struct simulation *simulation);

// Run until nothing is left to happen, or to the limit of time.
void simulation_run(struct simulation *simulation);

#endif
