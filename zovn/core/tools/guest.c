/* Plays guests in tests: sends numbered frames, counts what comes, and prints both as JSON.
 *
 * zovn-guest EAL... -- [-b BYTES] [-n FRAMES] [-q QUEUES] -p STATION[:TO:FRAMES[:RATE]]...
 *
 * One -p for each --vdev=net_virtio_user in order: its station; frames that it sends, and to which
 * one; how many it takes in a millisecond, 0 for all. With -q each queue is a station: the second one sends
 * from STATION + 1 to TO + 1. Each first announces its station by one frame
 * to an unknown one. Then it prints "ready", and sends once it reads a line. It ends when its input
 * is closed and nothing has come for a while; with -n, when so many frames came. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "tools/guest.h"

enum {
    RING = 256,
    MBUFS = 4096,
    LEAST_BYTES = 64,
    NOWHERE = 63,
    QUIET_MS = 300,
    QUIET_TURNS = 100
};

struct guest {
    struct port ports[GUEST_PORTS];
    uint16_t count, bytes, queues;
    uint64_t awaited; /* frames; 0: ends when its input does */
    struct rte_mempool *pool;
};

static void fail(const char *what) {
    fprintf(stderr, "zovn-guest: %s\n", what);
    exit(1);
}

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void read_port(struct guest *guest, const char *text) {
    if (guest->count == GUEST_PORTS)
        fail("too many ports");
    struct port *port = &guest->ports[guest->count];
    port->to = NOWHERE;
    if (sscanf(text, "%" SCNu16 ":%" SCNu16 ":%" SCNu64 ":%" SCNu64, &port->station, &port->to,
               &port->most, &port->rate) < 1 ||
        port->station + guest->queues > NOWHERE)
        fail("-p STATION[:TO:FRAMES[:RATE]]");
    port->queues = guest->queues;
    port->device = guest->count++;
}

static void read_options(struct guest *guest, int count, char **arguments) {
    *guest = (struct guest){.bytes = LEAST_BYTES, .queues = 1};
    for (int option; (option = getopt(count, arguments, "b:n:p:q:")) != -1;) {
        if (option == 'b')
            guest->bytes = (uint16_t)atoi(optarg);
        else if (option == 'n')
            guest->awaited = (uint64_t)atoi(optarg);
        else if (option == 'q')
            guest->queues = (uint16_t)atoi(optarg);
        else if (option == 'p')
            read_port(guest, optarg);
        else
            fail("unknown option");
    }
    if (guest->count != rte_eth_dev_count_avail() || guest->bytes < LEAST_BYTES ||
        guest->queues - 1u >= GUEST_QUEUES)
        fail("one -p for each device, at least 64 bytes, and 1 to 8 queues before -p");
}

static void start_one(const struct guest *guest, uint16_t device) {
    const struct rte_eth_conf config = {0};
    bool good = !rte_eth_dev_configure(device, guest->queues, guest->queues, &config);
    for (uint16_t i = 0; good && i < guest->queues; i++)
        good = !rte_eth_rx_queue_setup(device, i, RING, 0, NULL, guest->pool) &&
               !rte_eth_tx_queue_setup(device, i, RING, 0, NULL);
    if (!good || rte_eth_dev_start(device))
        fail("a device does not start");
}

static struct rte_mbuf *make(const struct guest *guest, uint16_t from, uint16_t to,
                             uint64_t number) {
    struct rte_mbuf *made = rte_pktmbuf_alloc(guest->pool);
    if (made)
        guest_write(from, to, number, (uint8_t *)rte_pktmbuf_append(made, guest->bytes),
                    guest->bytes);
    return made;
}

/* The switch learns where the stations are; every other one receives it and does not count it. */
static void announce(const struct guest *guest, const struct port *port) {
    for (uint16_t i = 0; i < port->queues; i++) {
        struct rte_mbuf *frame = make(guest, (uint16_t)(port->station + i), NOWHERE, 0);
        while (!rte_eth_tx_burst(port->device, i, &frame, 1))
            usleep(100);
    }
}

static void send_some(const struct guest *guest, struct port *port, uint16_t queue) {
    struct sending *sending = &port->sending[queue];
    while (sending->held_count < GUEST_BURST && sending->sent + sending->held_count < port->most) {
        struct rte_mbuf *made =
            make(guest, (uint16_t)(port->station + queue), (uint16_t)(port->to + queue),
                 sending->sent + sending->held_count);
        if (!made)
            break;
        sending->held[sending->held_count++] = made;
    }
    uint16_t sent = rte_eth_tx_burst(port->device, queue, sending->held, sending->held_count);
    sending->sent += sent;
    sending->held_count = (uint16_t)(sending->held_count - sent);
    memmove(sending->held, sending->held + sent, sending->held_count * sizeof sending->held[0]);
}

/* Return how many frames came; a slow port takes no more than its rate allows since the start. */
static uint16_t receive_some(struct port *port, uint16_t queue, uint64_t elapsed_ms) {
    struct rte_mbuf *got[GUEST_BURST];
    uint64_t allowed = port->rate ? port->rate * (elapsed_ms + 1) : UINT64_MAX;
    uint64_t most = allowed > port->taken ? allowed - port->taken : 0;
    most = most < GUEST_BURST ? most : GUEST_BURST;
    uint16_t count = most ? rte_eth_rx_burst(port->device, queue, got, (uint16_t)most) : 0;
    for (uint16_t i = 0; i < count; i++) {
        const uint8_t *bytes = rte_pktmbuf_mtod(got[i], uint8_t *);
        port->taken += guest_count(port, queue, bytes, got[i]->data_len);
        rte_pktmbuf_free(got[i]);
    }
    return count;
}

static bool input_closed(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 0) == 1;
}

static bool all_came(const struct guest *guest) {
    uint64_t taken = 0;
    for (uint16_t i = 0; i < guest->count; i++)
        taken += guest->ports[i].taken;
    return guest->awaited && taken >= guest->awaited;
}

/* Send and receive once; return whether anything came. */
static bool turn(struct guest *guest, uint64_t elapsed_ms) {
    uint64_t came = 0;
    for (uint16_t i = 0; i < guest->count * guest->queues; i++) {
        struct port *port = &guest->ports[i / guest->queues];
        send_some(guest, port, i % guest->queues);
        came += receive_some(port, i % guest->queues, elapsed_ms);
    }
    if (!came)
        usleep(50); /* two cores may be shared by many */
    return came;
}

/* Time alone proves nothing: this process may not have run. So turns count, too. */
static void run(struct guest *guest) {
    uint64_t begun_ms = now_ms(), last_ms = begun_ms, quiet_turns = 0;
    while (!all_came(guest) && (quiet_turns < QUIET_TURNS || now_ms() - last_ms < QUIET_MS)) {
        quiet_turns++;
        if (turn(guest, now_ms() - begun_ms) || guest->awaited || !input_closed()) {
            last_ms = now_ms();
            quiet_turns = 0;
        }
    }
}

int main(int count, char **arguments) {
    static struct guest guest;
    int used = rte_eal_init(count, arguments);
    if (used < 0)
        return 1;
    optind = 1;
    read_options(&guest, count - used, arguments + used);
    guest.pool = rte_pktmbuf_pool_create("frames", MBUFS * (1 + guest.queues / 4u), 0, 0,
                                         RTE_MBUF_DEFAULT_BUF_SIZE, 0);
    if (!guest.pool)
        fail("no memory");
    for (uint16_t i = 0; i < guest.count; i++)
        start_one(&guest, i);
    for (uint16_t i = 0; i < guest.count; i++)
        announce(&guest, &guest.ports[i]);
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF)
        return 1;
    run(&guest);
    guest_print(guest.ports, guest.count);
    fflush(stdout);
    for (uint16_t i = 0; i < guest.count; i++)
        rte_eth_dev_stop(i);
    return 0;
}
