/* Measures a switch by vhost-user from its guests' side, and prints what it found as JSON.
 *
 * zovn-generator EAL... -- [-b BYTES] [-s SECONDS] [-u SECONDS] [-d DESCRIPTORS] [-n FIRST]
 *     [-w FRAMES] [-f] [-y FD:FD] [-x FROM:TO[,TO...]]... [-r STATION:RATE]...
 *
 * Each --vdev=net_virtio_user is a station, numbered from -n on. -x says who sends to whom; stations
 * of other processes may be among the receivers. -r limits how many frames a station takes in a
 * second. -u is how long it sends before it measures, -w how many frames of a pair may be under way.
 * With -f a station has one queue for all its receivers: its ring has 32 descriptors, DPDK's least,
 * and the other frames wait behind it in order. -y names pipes by which several processes on one CPU
 * take turns: from the one before, and to the next.
 * It prints "ready" once all are connected, and sends once it reads a line. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "tools/generator.h"

enum { RING = 1024, LEAST_RING = 32, CACHE = 256, SETTLING_US = 200000 };

static void fail(const char *what) {
    fprintf(stderr, "zovn-generator: %s\n", what);
    exit(1);
}

static struct generator_station *station_of(struct generator *generator, uint64_t number) {
    if (number < generator->first || number - generator->first >= generator->count)
        fail("no such station in this process");
    return &generator->stations[number - generator->first];
}

static void read_targets(struct generator *generator, char *text) {
    struct generator_station *station = station_of(generator, strtoull(text, &text, 10));
    while (*text == ':' || *text == ',') {
        uint64_t to = strtoull(text + 1, &text, 10);
        if (to >= GENERATOR_STATIONS || station->target_count == GENERATOR_STATIONS)
            fail("-x FROM:TO[,TO...]: no such station");
        station->targets[station->target_count++] = (uint16_t)to;
    }
    if (*text || !station->target_count)
        fail("-x FROM:TO[,TO...]");
}

static void read_rate(struct generator *generator, char *text) {
    struct generator_station *station = station_of(generator, strtoull(text, &text, 10));
    if (*text != ':')
        fail("-r STATION:RATE");
    station->rate = atof(text + 1);
}

static void read_turns(struct generator *generator, const char *text) {
    if (sscanf(text, "%d:%d", &generator->turns.from, &generator->turns.to) != 2)
        fail("-y FD:FD");
    signal(SIGPIPE, SIG_IGN);
}

static void prepare(struct generator *generator) {
    *generator = (struct generator){
        .bytes = GENERATOR_BYTES, .ring = RING, .warm_s = 0.2, .measured_s = 1, .turns = {-1, -1}};
    generator->count = rte_eth_dev_count_avail();
    for (uint16_t i = 0; i < generator->count; i++)
        generator->stations[i].rate = -1;
}

static void number_from(struct generator *generator, uint64_t first) {
    if (first + generator->count > GENERATOR_STATIONS)
        fail("-n FIRST: too many stations");
    generator->first = (uint16_t)first;
    for (uint16_t i = 0; i < generator->count; i++) {
        generator->stations[i].device = i;
        generator->stations[i].number = (uint16_t)(first + i);
    }
}

/* Options that name stations follow -n. */
static void read_option(struct generator *generator, int option) {
    switch (option) {
    case 'b':
        generator->bytes = (uint16_t)atoi(optarg);
        break;
    case 's':
        generator->measured_s = atof(optarg);
        break;
    case 'u':
        generator->warm_s = atof(optarg);
        break;
    case 'd':
        generator->ring = (uint16_t)atoi(optarg);
        break;
    case 'n':
        number_from(generator, strtoull(optarg, NULL, 10));
        break;
    case 'w':
        generator->window = strtoull(optarg, NULL, 10);
        break;
    case 'f':
        generator->fifo = true;
        break;
    case 'y':
        read_turns(generator, optarg);
        break;
    case 'x':
        read_targets(generator, optarg);
        break;
    case 'r':
        read_rate(generator, optarg);
        break;
    default:
        fail("unknown option");
    }
}

static bool alone(const struct generator *generator) {
    for (uint16_t i = 0; i < generator->count; i++)
        for (uint16_t j = 0; j < generator->stations[i].target_count; j++)
            if (generator->stations[i].targets[j] < generator->first ||
                generator->stations[i].targets[j] >= generator->first + generator->count)
                return false;
    return true;
}

static void read_options(struct generator *generator, int count, char **arguments) {
    number_from(generator, 0);
    for (int option; (option = getopt(count, arguments, "b:s:u:d:n:w:fy:x:r:")) != -1;)
        read_option(generator, option);
    if (!generator->count || generator->bytes < GENERATOR_BYTES)
        fail("at least one device, and 64 bytes");
    generator->alone = alone(generator);
    if ((generator->window || generator->fifo) && !generator->alone)
        fail("-w and -f need all stations in this process");
}

static uint32_t frames_needed(const struct generator *generator) {
    uint32_t held = generator->fifo ? GENERATOR_HELD : GENERATOR_BURST;
    return generator->count * (2 * (uint32_t)generator->ring + held) + 4 * CACHE;
}

/* A short ring, once it is full of frames for a slow station, stops those behind them. */
static void start(const struct generator *generator) {
    const struct rte_eth_conf config = {0};
    uint16_t descriptors = generator->fifo ? LEAST_RING : generator->ring;
    for (uint16_t i = 0; i < generator->count; i++)
        if (rte_eth_dev_configure(i, 1, 1, &config) ||
            rte_eth_rx_queue_setup(i, 0, generator->ring, 0, NULL, generator->pool) ||
            rte_eth_tx_queue_setup(i, 0, descriptors, 0, NULL) || rte_eth_dev_start(i))
            fail("a device does not start");
}

int main(int count, char **arguments) {
    static struct generator generator;
    int used = rte_eal_init(count, arguments);
    if (used < 0)
        return 1;
    optind = 1;
    prepare(&generator);
    read_options(&generator, count - used, arguments + used);
    generator.pool = rte_pktmbuf_pool_create("frames", frames_needed(&generator), CACHE, 0,
                                             RTE_MBUF_DEFAULT_BUF_SIZE, 0);
    if (!generator.pool)
        fail("no memory: more of it by -m");
    start(&generator);
    generator_announce(&generator);
    usleep(SETTLING_US);
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF)
        return 1;
    generator_run(&generator);
    generator_print(&generator, stdout);
    fflush(stdout);
    for (uint16_t i = 0; i < generator.count; i++)
        rte_eth_dev_stop(i);
    return 0;
}
