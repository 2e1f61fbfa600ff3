/* Plays guests in tests: sends numbered frames, counts what comes, and prints both as JSON.
 *
 * zovn-guest EAL... -- [-b BYTES] [-n FRAMES] -p STATION[:TO:FRAMES[:RATE]]...
 *
 * One -p for each --vdev=net_virtio_user in order: its station; frames that it sends, and to which
 * one; how many it takes in a millisecond, 0 for all. Each first announces its station by one frame
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
    uint16_t count, bytes;
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
        port->station >= NOWHERE)
        fail("-p STATION[:TO:FRAMES[:RATE]]");
    port->device = guest->count++;
}

static void read_options(struct guest *guest, int count, char **arguments) {
    *guest = (struct guest){.bytes = LEAST_BYTES};
    for (int option; (option = getopt(count, arguments, "b:n:p:")) != -1;) {
        if (option == 'b')
            guest->bytes = (uint16_t)atoi(optarg);
        else if (option == 'n')
            guest->awaited = (uint64_t)atoi(optarg);
        else if (option == 'p')
            read_port(guest, optarg);
        else
            fail("unknown option");
    }
    if (guest->count != rte_eth_dev_count_avail() || guest->bytes < LEAST_BYTES)
        fail("one -p for each device, and at least 64 bytes");
}

static void start(const struct guest *guest) {
    const struct rte_eth_conf config = {0};
    for (uint16_t i = 0; i < guest->count; i++)
        if (rte_eth_dev_configure(i, 1, 1, &config) ||
            rte_eth_rx_queue_setup(i, 0, RING, 0, NULL, guest->pool) ||
            rte_eth_tx_queue_setup(i, 0, RING, 0, NULL) || rte_eth_dev_start(i))
            fail("a device does not start");
}

static struct rte_mbuf *make(const struct guest *guest, const struct port *port, uint64_t number) {
    struct rte_mbuf *made = rte_pktmbuf_alloc(guest->pool);
    if (made)
        guest_write(port, number, (uint8_t *)rte_pktmbuf_append(made, guest->bytes), guest->bytes);
    return made;
}

/* The switch learns where the station is; every other one receives it and does not count it. */
static void announce(const struct guest *guest, struct port *port) {
    const uint16_t to = port->to;
    port->to = NOWHERE;
    struct rte_mbuf *frame = make(guest, port, 0);
    port->to = to;
    while (!rte_eth_tx_burst(port->device, 0, &frame, 1))
        usleep(100);
}

static void send_some(const struct guest *guest, struct port *port) {
    while (port->held_count < GUEST_BURST && port->sent + port->held_count < port->most) {
        struct rte_mbuf *made = make(guest, port, port->sent + port->held_count);
        if (!made)
            break;
        port->held[port->held_count++] = made;
    }
    uint16_t sent = rte_eth_tx_burst(port->device, 0, port->held, port->held_count);
    port->sent += sent;
    port->held_count = (uint16_t)(port->held_count - sent);
    memmove(port->held, port->held + sent, port->held_count * sizeof port->held[0]);
}

/* Return how many frames came; a slow port takes no more than its rate allows since the start. */
static uint16_t receive_some(struct port *port, uint64_t elapsed_ms) {
    struct rte_mbuf *got[GUEST_BURST];
    uint64_t allowed = port->rate ? port->rate * (elapsed_ms + 1) : UINT64_MAX;
    uint64_t most = allowed > port->taken ? allowed - port->taken : 0;
    most = most < GUEST_BURST ? most : GUEST_BURST;
    uint16_t count = most ? rte_eth_rx_burst(port->device, 0, got, (uint16_t)most) : 0;
    for (uint16_t i = 0; i < count; i++) {
        port->taken += guest_count(port, rte_pktmbuf_mtod(got[i], uint8_t *), got[i]->data_len);
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
    for (uint16_t i = 0; i < guest->count; i++) {
        send_some(guest, &guest->ports[i]);
        came += receive_some(&guest->ports[i], elapsed_ms);
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

static void print_tallies(const struct port *port) {
    const char *before = "";
    for (uint16_t i = 0; i < GUEST_STATIONS; i++) {
        const struct tally *tally = &port->from[i];
        if (!tally->received)
            continue;
        printf("%s\"%d\": {\"received\": %" PRIu64 ", \"repeated\": %" PRIu64
               ", \"overtaken\": %" PRIu64 ", \"gaps\": %" PRIu64 "}",
               before, i, tally->received, tally->repeated, tally->overtaken, tally->gaps);
        before = ", ";
    }
}

static void print(const struct guest *guest) {
    printf("{");
    for (uint16_t i = 0; i < guest->count; i++) {
        const struct port *port = &guest->ports[i];
        printf("%s\"%d\": {\"to\": %d, \"sent\": %" PRIu64 ", \"from\": {", i ? ", " : "",
               port->station, port->to, port->sent);
        print_tallies(port);
        printf("}}");
    }
    printf("}\n");
}

int main(int count, char **arguments) {
    static struct guest guest;
    int used = rte_eal_init(count, arguments);
    if (used < 0)
        return 1;
    optind = 1;
    read_options(&guest, count - used, arguments + used);
    guest.pool = rte_pktmbuf_pool_create("frames", MBUFS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
    if (!guest.pool)
        fail("no memory");
    start(&guest);
    for (uint16_t i = 0; i < guest.count; i++)
        announce(&guest, &guest.ports[i]);
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF)
        return 1;
    run(&guest);
    print(&guest);
    fflush(stdout);
    for (uint16_t i = 0; i < guest.count; i++)
        rte_eth_dev_stop(i);
    return 0;
}
