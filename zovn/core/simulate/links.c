// Makes the links of the fat tree, with their buffers and their flow control.
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"
#include "topology.h"

#define PAUSE_FRAME 84 // bytes on the wire

static uint32_t links_of(const struct topology *t, enum place place) {
    switch (place) {
    case VM_TO_HOST:
    case HOST_TO_VM:
        return t->hosts * t->vms;
    case HOST_TO_CHASSIS:
    case CHASSIS_TO_HOST:
        return t->hosts;
    case CHASSIS_TO_AGGREGATION:
    case AGGREGATION_TO_CHASSIS:
        return t->chassis * t->aggregations;
    default:
        return t->chassis / t->chassis_per_pod * t->aggregations * t->cores;
    }
}

// The two nodes of the n-th pair of links between two layers: lower in `from`, upper in `to`.
static void connect(const struct topology *t, struct link *link, uint32_t n) {
    uint32_t pod;
    switch (link->place) {
    case VM_TO_HOST:
    case HOST_TO_VM:
        link->from = n, link->to = n / t->vms;
        break;
    case HOST_TO_CHASSIS:
    case CHASSIS_TO_HOST:
        link->from = n, link->to = n / t->servers;
        break;
    case CHASSIS_TO_AGGREGATION:
    case AGGREGATION_TO_CHASSIS:
        link->from = n / t->aggregations;
        pod = link->from / t->chassis_per_pod;
        link->to = pod * t->aggregations + n % t->aggregations;
        break;
    default:
        link->from = n / t->cores;
        link->to = link->from % t->aggregations * t->cores + n % t->cores;
    }
}

static void turn_down(struct link *link) {
    uint32_t lower = link->from;
    link->from = link->to, link->to = lower;
}

static bool leads_down(enum place place) {
    return place == HOST_TO_VM || place == CHASSIS_TO_HOST || place == AGGREGATION_TO_CHASSIS ||
           place == CORE_TO_AGGREGATION;
}

static void set_speed(const struct config *c, struct link *link) {
    bool wire = link->place > HOST_TO_VM;
    link->ps_per_byte = wire ? c->link_ps_per_byte : c->vm_ps_per_byte;
    link->frame = wire ? c->overlay + GAP : ETHERNET;
    link->delay_ps = wire ? c->hop_ps : link->place == HOST_TO_VM ? c->stack_ps : 0;
}

static void set_room(const struct config *c, struct link *link) {
    link->room_in_packets = link->place <= HOST_TO_CHASSIS;
    link->room = link->room_in_packets ? c->virtual_queue : c->buffer / c->classes;
}

static enum arrival arrival_of(const struct config *c, enum place place) {
    bool into_host = place == CHASSIS_TO_HOST;
    if (place == VM_TO_HOST || into_host) {
        if (!c->virtual_lossless)
            return ARRIVAL_TAIL;
        return into_host && !c->physical_lossless ? ARRIVAL_FULL : ARRIVAL_PAUSE;
    }
    return c->physical_lossless ? ARRIVAL_PAUSE : ARRIVAL_TAIL;
}

// Pause while what is on its way still fits: sent before the pause arrives, and in flight.
static void set_pausing(const struct config *c, struct link *link) {
    int64_t frame = c->mtu + c->overlay, unit = link->capacity_in_packets ? 1 : frame;
    int64_t late = link->pause_delay_ps + link->delay_ps;
    int64_t headroom = link->capacity_in_packets ? 2 : late / link->ps_per_byte + 2 * (frame + GAP);
    link->pause_above = link->capacity - headroom - unit;
    link->resume_below = link->pause_above - unit;
    if (link->resume_below >= 0)
        return;
    fprintf(stderr, "error: buffer: too small to be lossless; give each class %lld bytes\n",
            (long long)(headroom + 2 * unit));
    exit(2);
}

static void set_receiver(const struct config *c, struct link *link) {
    link->arrival = arrival_of(c, link->place);
    link->capacity_in_packets = link->place == VM_TO_HOST;
    link->capacity = link->capacity_in_packets ? c->virtual_queue : c->buffer / c->classes;
    if (!link->capacity_in_packets)
        // A frame of the other direction may have to end first.
        link->pause_delay_ps =
            c->hop_ps + (c->mtu + c->overlay + GAP + PAUSE_FRAME) * c->link_ps_per_byte;
    if (link->arrival == ARRIVAL_PAUSE && link->place != HOST_TO_VM)
        set_pausing(c, link);
}

static void set_up(const struct topology *t, const struct config *c, struct link *link,
                   enum place place, uint32_t n) {
    link->place = place;
    connect(t, link, n);
    if (leads_down(place))
        turn_down(link);
    uint32_t classes = (uint32_t)c->classes;
    link->queue_count = place == VM_TO_HOST ? classes * t->destinations : classes;
    set_speed(c, link);
    set_room(c, link);
    set_receiver(c, link);
}

static struct topology shape(const struct config *c) {
    return (struct topology){
        .vms = (uint32_t)c->vms,
        .servers = (uint32_t)c->servers,
        .chassis = (uint32_t)c->chassis,
        .chassis_per_pod = (uint32_t)(c->chassis / c->pods),
        .aggregations = (uint32_t)c->aggregations,
        .cores = (uint32_t)c->cores,
        .hosts = (uint32_t)(c->chassis * c->servers),
        .destinations = c->blocking ? 1 : (uint32_t)c->vms + 1,
    };
}

struct topology topology_build(struct network *network, const struct config *c) {
    struct topology t = shape(c);
    for (enum place place = 0; place < PLACES; place++) {
        t.first[place] = network->link_count;
        network->link_count += links_of(&t, place);
    }
    network->overlay = c->overlay;
    network->links = memory_new(network->link_count, sizeof *network->links);
    for (enum place place = 0; place < PLACES; place++)
        for (uint32_t n = 0; n < links_of(&t, place); n++)
            set_up(&t, c, &network->links[t.first[place] + n], place, n);
    return t;
}
