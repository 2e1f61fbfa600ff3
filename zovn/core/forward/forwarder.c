/* Runs the switch in a thread of its own, and changes it between two steps. */
#include "forward/forwarder.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { DRAIN_TRIES = 100, DRAIN_PAUSE_NS = 1000000 };

static void *forward(void *context) {
    struct zovn_forwarder *forwarder = context;
    prctl(PR_SET_TIMERSLACK, 1);
    while (forwarder->running) {
        bool moved = zovn_loop_step(&forwarder->loop);
        bool served = zovn_mailbox_serve(&forwarder->mailbox);
        if (!moved && !served)
            zovn_loop_rest(&forwarder->loop);
    }
    return NULL;
}

const char *zovn_forwarder_start(struct zovn_forwarder *forwarder,
                                 const struct zovn_settings *settings) {
    const char *problem = NULL;
    *forwarder = (struct zovn_forwarder){.running = true};
    forwarder->vswitch = zovn_switch_new(settings, &problem);
    if (!forwarder->vswitch)
        return problem;
    if (!zovn_mailbox_init(&forwarder->mailbox) ||
        !zovn_loop_open(&forwarder->loop, forwarder->vswitch, forwarder->mailbox.event))
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
    zovn_loop_close(&forwarder->loop);
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
    zovn_loop_attach(&forwarder->loop, (uint32_t)request->place, request->attachment);
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
    zovn_loop_detach(&forwarder->loop, (uint32_t)request->place);
    zovn_switch_remove(forwarder->vswitch, (uint32_t)request->place, request->last);
}

void zovn_forwarder_detach(struct zovn_forwarder *forwarder, int32_t place,
                           struct zovn_counters *last) {
    struct request request = {.forwarder = forwarder, .place = place, .last = last};
    zovn_mailbox_send(&forwarder->mailbox, detach, &request);
}

static void rewake(void *context) {
    struct request *request = context;
    zovn_loop_rewake(&request->forwarder->loop, (uint32_t)request->place, request->which,
                     request->file);
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

void zovn_forwarder_call(struct zovn_forwarder *forwarder, void (*call)(void *context),
                         void *context) {
    zovn_mailbox_send(&forwarder->mailbox, call, context);
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
    naps->naps = naps->forwarder->loop.nap.count;
    naps->missed = naps->forwarder->loop.nap.missed;
}

uint64_t zovn_forwarder_naps(struct zovn_forwarder *forwarder, uint64_t *missed) {
    struct naps naps = {.forwarder = forwarder};
    zovn_mailbox_send(&forwarder->mailbox, count_naps, &naps);
    *missed = naps.missed;
    return naps.naps;
}
