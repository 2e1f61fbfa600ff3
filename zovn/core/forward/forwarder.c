/* Runs the switch in a thread of its own, and changes it between two steps. */
#include "forward/forwarder.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum { SPINS = 256, DRAIN_TRIES = 100, DRAIN_PAUSE_NS = 1000000, MOST_ELAPSED_NS = 200000000 };

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Time in which this process did not run does not count: a destination had no chance to take
 * anything then, and must not be treated as stalled. */
static bool step(struct zovn_forwarder *forwarder) {
    uint64_t read_ns = clock_ns(), elapsed_ns = read_ns - forwarder->read_ns;
    forwarder->read_ns = read_ns;
    forwarder->now_ns += elapsed_ns < MOST_ELAPSED_NS ? elapsed_ns : MOST_ELAPSED_NS;
    return zovn_switch_step(forwarder->vswitch, forwarder->now_ns) > 0;
}

static void ask_all(struct zovn_forwarder *forwarder, bool notify) {
    for (uint32_t i = 0; i < ZOVN_MOST_PORTS; i++)
        if (forwarder->attached[i].port)
            forwarder->attached[i].ask(forwarder->attached[i].port, notify);
}

/* Of what came before the peers were asked they do not notify: the step after that finds it. */
static void nap(struct zovn_forwarder *forwarder) {
    ask_all(forwarder, true);
    if (!step(forwarder) && !zovn_nap_sleep(&forwarder->nap) && step(forwarder))
        zovn_nap_check(&forwarder->nap);
    ask_all(forwarder, false);
}

static void *forward(void *context) {
    struct zovn_forwarder *forwarder = context;
    uint32_t idle = 0;
    while (forwarder->running) {
        bool moved = step(forwarder);
        moved |= zovn_mailbox_serve(&forwarder->mailbox);
        idle = moved ? 0 : idle + 1;
        if (idle < SPINS)
            continue;
        nap(forwarder);
        idle = 0;
    }
    return NULL;
}

const char *zovn_forwarder_start(struct zovn_forwarder *forwarder,
                                 const struct zovn_settings *settings) {
    const char *problem = NULL;
    *forwarder = (struct zovn_forwarder){.running = true, .read_ns = clock_ns()};
    forwarder->now_ns = forwarder->read_ns;
    forwarder->vswitch = zovn_switch_new(settings, &problem);
    if (!forwarder->vswitch)
        return problem;
    if (!zovn_mailbox_init(&forwarder->mailbox) ||
        !zovn_nap_open(&forwarder->nap, forwarder->mailbox.event))
        return strerror(errno);
    int error = pthread_create(&forwarder->thread, NULL, forward, forwarder);
    return error ? strerror(error) : NULL;
}

static void end(void *context) {
    struct zovn_forwarder *forwarder = context;
    forwarder->running = false;
}

void zovn_forwarder_stop(struct zovn_forwarder *forwarder) {
    zovn_mailbox_send(&forwarder->mailbox, end, forwarder);
    pthread_join(forwarder->thread, NULL);
    zovn_switch_free(forwarder->vswitch);
    zovn_mailbox_close(&forwarder->mailbox);
    zovn_nap_close(&forwarder->nap);
}

/* One message about a port. */
struct request {
    struct zovn_forwarder *forwarder;
    int32_t place;
    const struct zovn_attachment *attachment;
    const struct zovn_port_options *options;
    const char *problem;
    struct zovn_counters *last;
    struct zovn_port_state *state;
    bool drained;
    uint32_t which;
    int file;
    void (*call)(void *context);
    void *context;
};

static void attach(void *context) {
    struct request *request = context;
    struct zovn_forwarder *forwarder = request->forwarder;
    const struct zovn_port_options *options = request->options;
    request->place = zovn_switch_add(forwarder->vswitch, request->attachment->port,
                                     &options->settings, &request->problem);
    if (request->place < 0)
        return;
    for (uint32_t i = 0; i < options->address_count; i++)
        zovn_switch_fix(forwarder->vswitch, (uint32_t)request->place, options->settings.vlan,
                        options->addresses[i]);
    forwarder->attached[request->place] = *request->attachment;
    for (uint32_t i = 0; i < ZOVN_WAKES; i++)
        zovn_nap_watch(&forwarder->nap, request->attachment->wakes[i]);
}

int32_t zovn_forwarder_attach(struct zovn_forwarder *forwarder,
                              const struct zovn_attachment *attachment,
                              const struct zovn_port_options *options, const char **problem) {
    struct request request = {.forwarder = forwarder, .attachment = attachment, .options = options};
    zovn_mailbox_send(&forwarder->mailbox, attach, &request);
    *problem = request.problem;
    return request.place;
}

static void drain(void *context) {
    struct request *request = context;
    request->drained = zovn_switch_drain(request->forwarder->vswitch, (uint32_t)request->place);
}

void zovn_forwarder_drain(struct zovn_forwarder *forwarder, int32_t place) {
    struct request request = {.forwarder = forwarder, .place = place};
    for (int i = 0; i < DRAIN_TRIES && !request.drained; i++) {
        if (i)
            nanosleep(&(struct timespec){.tv_nsec = DRAIN_PAUSE_NS}, NULL);
        zovn_mailbox_send(&forwarder->mailbox, drain, &request);
    }
}

static void detach(void *context) {
    struct request *request = context;
    struct zovn_forwarder *forwarder = request->forwarder;
    struct zovn_attachment *attached = &forwarder->attached[request->place];
    for (uint32_t i = 0; i < ZOVN_WAKES; i++)
        zovn_nap_unwatch(&forwarder->nap, attached->wakes[i]);
    attached->port = NULL;
    zovn_switch_remove(forwarder->vswitch, (uint32_t)request->place, request->last);
}

void zovn_forwarder_detach(struct zovn_forwarder *forwarder, int32_t place,
                           struct zovn_counters *last) {
    struct request request = {.forwarder = forwarder, .place = place, .last = last};
    zovn_mailbox_send(&forwarder->mailbox, detach, &request);
}

static void rewake(void *context) {
    struct request *request = context;
    int *file = &request->forwarder->attached[request->place].wakes[request->which];
    zovn_nap_unwatch(&request->forwarder->nap, *file);
    *file = request->file;
    zovn_nap_watch(&request->forwarder->nap, *file);
    request->call(request->context);
}

void zovn_forwarder_rewake(struct zovn_forwarder *forwarder, int32_t place, uint32_t which,
                           int file, void (*call)(void *context), void *context) {
    struct request request = {.forwarder = forwarder,
                              .place = place,
                              .which = which,
                              .file = file,
                              .call = call,
                              .context = context};
    zovn_mailbox_send(&forwarder->mailbox, rewake, &request);
}

static void look(void *context) {
    struct request *request = context;
    const struct zovn_switch *vswitch = request->forwarder->vswitch;
    uint32_t place = (uint32_t)request->place;
    zovn_switch_counters(vswitch, place, &request->state->counters);
    request->state->fault = zovn_switch_fault(vswitch, place);
    request->state->stalled = zovn_switch_stalled(vswitch, place);
}

void zovn_forwarder_look(struct zovn_forwarder *forwarder, int32_t place,
                         struct zovn_port_state *state) {
    struct request request = {.forwarder = forwarder, .place = place, .state = state};
    zovn_mailbox_send(&forwarder->mailbox, look, &request);
}

struct naps {
    const struct zovn_forwarder *forwarder;
    uint64_t naps, missed;
};

static void count_naps(void *context) {
    struct naps *naps = context;
    naps->naps = naps->forwarder->nap.count;
    naps->missed = naps->forwarder->nap.missed;
}

uint64_t zovn_forwarder_naps(struct zovn_forwarder *forwarder, uint64_t *missed) {
    struct naps naps = {.forwarder = forwarder};
    zovn_mailbox_send(&forwarder->mailbox, count_naps, &naps);
    *missed = naps.missed;
    return naps.naps;
}
