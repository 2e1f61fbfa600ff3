/* Threads that attach, look at and detach ports while others forward between them; built with the thread
 * sanitizer, which finds what is touched by two threads at once.
 *
 * Usage: zovn-forward-races ROUNDS [THREADS] */
#include <stdio.h>
#include <stdlib.h>

#include "forward/line.h"
#include "tools/endless_port.h"

enum { LINES = 5, LOOKS = 20 };

struct worker {
    struct zovn_line line;
    pthread_t thread;
    uint32_t rounds, station;
};

static void fail(const char *what) {
    fprintf(stderr, "zovn-forward-races: %s\n", what);
    exit(1);
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

/* Frames move between two looks. */
static void look(struct zovn_line *line) {
    struct zovn_line_state state;
    for (uint32_t i = 0; i < LOOKS; i++) {
        zovn_line_look(line, &state);
        check(&state.port.counters);
    }
}

static void *work(void *context) {
    struct worker *worker = context;
    for (uint32_t i = 0; i < worker->rounds; i++) {
        const char *problem = NULL;
        struct zovn_attachment attachment = {.port = endless_port_new(worker->station),
                                             .ask = ignore};
        if (!attachment.port || !zovn_line_attach(&worker->line, &attachment, &problem))
            fail(problem ? problem : "no memory");
        look(&worker->line);
        zovn_line_detach(&worker->line);
    }
    return NULL;
}

/* A stall of a moment has frames dropped, and parking make room, again and again. */
static struct zovn_settings settings_of(int count, char **arguments) {
    struct zovn_settings settings;
    zovn_settings_default(&settings);
    settings.stall_ns = 1000000;
    settings.parked = 4;
    if (count > 2)
        settings.threads = (uint32_t)atoi(arguments[2]);
    return settings;
}

static void start(struct worker *worker, struct zovn_forwarder *forwarder, uint32_t station,
                  uint32_t rounds) {
    const struct zovn_port_options options = {.settings = {.vlan = 1}};
    *worker = (struct worker){.rounds = rounds, .station = station};
    zovn_line_init(&worker->line, forwarder, &options);
    pthread_create(&worker->thread, NULL, work, worker);
}

int main(int count, char **arguments) {
    static struct zovn_forwarder forwarder;
    static struct worker workers[LINES];
    if (count < 2)
        fail("usage: zovn-forward-races ROUNDS [THREADS]");
    const struct zovn_settings settings = settings_of(count, arguments);
    const char *problem = zovn_forwarder_start(&forwarder, &settings);
    if (problem)
        fail(problem);
    for (uint32_t i = 0; i < LINES; i++)
        start(&workers[i], &forwarder, i, (uint32_t)atoi(arguments[1]));
    for (uint32_t i = 0; i < LINES; i++) {
        pthread_join(workers[i].thread, NULL);
        check(&workers[i].line.before);
    }
    zovn_forwarder_stop(&forwarder);
    printf("%llu frames\n", (unsigned long long)endless_received());
    return 0;
}
