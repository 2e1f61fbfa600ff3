/* Threads that attach, look at and detach ports while the forwarding thread forwards between them;
 * built with the thread sanitizer, which finds what is touched by two threads at once.
 *
 * Usage: zovn-forward-races ROUNDS */
#include <stdio.h>
#include <stdlib.h>

#include "forward/line.h"
#include "ports/memory_port.h"

enum { LINES = 4, HEADS = 16, FRAME = 64 };

struct worker {
    struct zovn_line line;
    pthread_t thread;
    uint32_t rounds;
    uint8_t station;
};

static void fail(const char *what) {
    fprintf(stderr, "zovn-forward-races: %s\n", what);
    exit(1);
}

/* A memory port has one owner at a time: its peer acts before it is attached. */
static struct zovn_port *new_port(uint8_t station) {
    const uint8_t to = (uint8_t)(station % LINES + 1);
    const uint8_t frame[FRAME] = {2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, station, 0x88, 0xb5};
    struct zovn_port *port = zovn_memory_port_new(HEADS, HEADS);
    for (uint32_t i = 0; port && i < HEADS; i++)
        zovn_memory_port_send(port, frame, sizeof frame, NULL);
    return port;
}

static void ignore(struct zovn_port *port, bool notify) {
    (void)port;
    (void)notify;
}

static void check(const struct zovn_counters *counters) {
    uint64_t ended = counters->delivered + counters->held + counters->parked;
    for (uint32_t i = 0; i < ZOVN_REASONS; i++)
        ended += counters->drops[i];
    if (counters->in + counters->copies != ended)
        fail("in + copies is not delivered + held + parked + drops");
}

static void *work(void *context) {
    struct worker *worker = context;
    for (uint32_t i = 0; i < worker->rounds; i++) {
        const char *problem = NULL;
        struct zovn_attachment attachment = {.port = new_port(worker->station), .ask = ignore};
        if (!attachment.port || !zovn_line_attach(&worker->line, &attachment, &problem))
            fail(problem ? problem : "no memory");
        struct zovn_line_state state;
        zovn_line_look(&worker->line, &state);
        check(&state.port.counters);
        zovn_line_detach(&worker->line);
    }
    return NULL;
}

int main(int count, char **arguments) {
    static struct zovn_forwarder forwarder;
    static struct worker workers[LINES];
    struct zovn_settings settings;
    zovn_settings_default(&settings);
    settings.stall_ns = 1000000;
    const char *problem = zovn_forwarder_start(&forwarder, &settings);
    if (count != 2 || problem)
        fail(problem ? problem : "usage: zovn-forward-races ROUNDS");
    for (uint32_t i = 0; i < LINES; i++) {
        const struct zovn_port_options options = {.settings = {.vlan = 1}};
        workers[i] =
            (struct worker){.rounds = (uint32_t)atoi(arguments[1]), .station = (uint8_t)(i + 1)};
        zovn_line_init(&workers[i].line, &forwarder, &options);
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    uint64_t in = 0;
    for (uint32_t i = 0; i < LINES; i++) {
        pthread_join(workers[i].thread, NULL);
        check(&workers[i].line.before);
        in += workers[i].line.before.in;
    }
    zovn_forwarder_stop(&forwarder);
    printf("%llu frames\n", (unsigned long long)in);
    return 0;
}
