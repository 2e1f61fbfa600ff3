// Links: queueing and transmission, and what their receivers do when buffers fill.
#include "network.h"

#define QUANTUM 1600 // bytes a turn

static int64_t cost(const struct network *network, const struct packet *packet, bool in_packets) {
    return in_packets ? 1 : packet->length + network->overlay;
}

static void append(struct network *network, struct link *link, uint32_t queue, uint32_t index) {
    struct packet *packet = &network->packets.all[index];
    struct queue *q = &link->queues[queue];
    packet->queue = (uint8_t)queue;
    packet->next = NO_PACKET;
    if (link->waiting >> queue & 1)
        network->packets.all[q->tail].next = index;
    else
        q->head = index;
    q->tail = index;
    q->cost += cost(network, packet, link->room_in_packets);
    link->waiting |= 1U << queue;
}

static uint32_t take_head(struct network *network, struct link *link, uint32_t queue) {
    struct queue *q = &link->queues[queue];
    uint32_t index = q->head;
    struct packet *packet = &network->packets.all[index];
    q->head = packet->next;
    q->cost -= cost(network, packet, link->room_in_packets);
    q->deficit -= packet->length;
    if (q->head == NO_PACKET) {
        link->waiting &= ~(1U << queue);
        q->deficit = 0;
    }
    return index;
}

// Deficit round robin in bytes over the queues that may send.
static uint32_t next_queue(const struct network *network, struct link *link, uint32_t ready) {
    for (;;) {
        uint32_t turn = link->turn;
        struct queue *q = &link->queues[turn];
        if (ready >> turn & 1) {
            if (q->deficit >= network->packets.all[q->head].length)
                return turn;
            q->deficit += QUANTUM;
        }
        link->turn = turn + 1 == link->queue_count ? 0 : turn + 1;
    }
}

// The buffer at a link's receiver has one packet less of a queue.
static void give_back(struct network *network, const struct packet *packet) {
    if (packet->ingress == NO_LINK)
        return;
    struct link *from = &network->links[packet->ingress];
    uint32_t queue = packet->charged;
    from->held[queue] -= cost(network, packet, from->capacity_in_packets);
    if (!(from->stopped >> queue & 1) || from->held[queue] > from->resume_below)
        return;
    from->stopped &= ~(1U << queue);
    events_add(&network->events, network->events.now_ps + from->pause_delay_ps, EVENT_RESUME,
               packet->ingress, queue);
}

static void send_next(struct network *network, uint32_t at) {
    struct link *link = &network->links[at];
    uint32_t ready = link->waiting & ~link->paused;
    if (!ready)
        return;
    uint32_t index = take_head(network, link, next_queue(network, link, ready));
    struct packet *packet = &network->packets.all[index];
    give_back(network, packet);
    int64_t bytes = packet->length + link->frame;
    link->bytes += bytes;
    link->free_ps = network->events.now_ps + bytes * link->ps_per_byte;
    events_add(&network->events, link->free_ps + link->delay_ps, EVENT_ARRIVAL, at, index);
    if (link->place == VM_TO_HOST && packet->endpoint == NO_ENDPOINT)
        network->datagram_sent(network->background, packet->source);
}

// Send now, or when the link is free.
static void kick(struct network *network, uint32_t at) {
    struct link *link = &network->links[at];
    if (link->awake)
        return;
    if (link->free_ps <= network->events.now_ps)
        send_next(network, at);
    if (link->awake || !(link->waiting & ~link->paused))
        return;
    link->awake = true;
    events_add(&network->events, link->free_ps, EVENT_WAKE, at, 0);
}

void network_wake(struct network *network, uint32_t link) {
    network->links[link].awake = false;
    kick(network, link);
}

void network_pause(struct network *network, uint32_t link, uint32_t queue) {
    network->links[link].paused |= 1U << queue;
}

void network_resume(struct network *network, uint32_t link, uint32_t queue) {
    network->links[link].paused &= ~(1U << queue);
    kick(network, link);
}

void network_originate(struct network *network, uint32_t link, uint32_t queue, uint32_t packet) {
    append(network, &network->links[link], queue, packet);
    kick(network, link);
}

// The counter of the drop that this arrival causes, or NULL if it is admitted.
static uint64_t *dropped(struct network *network, const struct link *from, const struct link *to,
                         uint32_t queue, const struct packet *packet) {
    if (from->arrival == ARRIVAL_TAIL) {
        int64_t full = to->queues[queue].cost + cost(network, packet, to->room_in_packets);
        return full > to->room ? &network->drops.tail[to->place][packet->class] : NULL;
    }
    int64_t held = from->held[packet->queue] + cost(network, packet, from->capacity_in_packets);
    if (held <= from->capacity)
        return NULL;
    return from->arrival == ARRIVAL_FULL ? &network->drops.full[packet->class]
                                         : &network->drops.overrun;
}

static void charge(struct network *network, uint32_t at, struct packet *packet) {
    struct link *from = &network->links[at];
    uint32_t queue = packet->charged = packet->queue;
    packet->ingress = at;
    from->held[queue] += cost(network, packet, from->capacity_in_packets);
    if (from->held[queue] > from->most_held)
        from->most_held = from->held[queue];
    if (from->arrival != ARRIVAL_PAUSE || from->stopped >> queue & 1 ||
        from->held[queue] <= from->pause_above)
        return;
    from->stopped |= 1U << queue;
    network->pauses[from->place]++;
    events_add(&network->events, network->events.now_ps + from->pause_delay_ps, EVENT_PAUSE, at,
               queue);
}

void network_forward(struct network *network, uint32_t from, uint32_t to, uint32_t queue,
                     uint32_t index) {
    struct packet *packet = &network->packets.all[index];
    uint64_t *counter = dropped(network, &network->links[from], &network->links[to], queue, packet);
    if (counter) {
        ++*counter;
        packets_free(&network->packets, index);
        return;
    }
    charge(network, from, packet);
    append(network, &network->links[to], queue, index);
    kick(network, to);
}
