/* Calls that the forwarding threads make between two steps. */
#include "forward/forwarder.h"

#include <time.h>

enum { DRAIN_TRIES = 100, DRAIN_PAUSE_NS = 1000000 };

const char *zovn_forwarder_start(struct zovn_forwarder *forwarder,
                                 const struct zovn_settings *settings) {
    const char *problem = zovn_threads_start(&forwarder->threads, settings);
    forwarder->vswitch = forwarder->threads.vswitch;
    return problem;
}

void zovn_forwarder_stop(struct zovn_forwarder *forwarder) {
    zovn_threads_stop(&forwarder->threads);
}

/* The loop of the thread that has a port. */
static struct zovn_loop *loop_of(struct zovn_forwarder *forwarder, int32_t place) {
    int32_t part = zovn_switch_part(forwarder->vswitch, (uint32_t)place);
    return &forwarder->threads.each[part].loop;
}

/* What a message asks for, with room for its answer. */
struct attaching {
    struct zovn_forwarder *forwarder;
    const struct zovn_attachment *attachment;
    const struct zovn_port_options *options;
    const char *problem;
    int32_t place;
};

/* No other port has one of these addresses, and this one has room for them (program/ports.c). */
static void fix_addresses(const struct attaching *attaching) {
    const struct zovn_port_options *options = attaching->options;
    for (uint32_t i = 0; i < options->address_count; i++)
        zovn_switch_fix(attaching->forwarder->vswitch, (uint32_t)attaching->place,
                        options->settings.vlan, options->addresses[i]);
}

static void attach(void *context) {
    struct attaching *attaching = context;
    struct zovn_forwarder *forwarder = attaching->forwarder;
    attaching->place = zovn_switch_add(forwarder->vswitch, attaching->attachment->port,
                                       &attaching->options->settings, &attaching->problem);
    if (attaching->place < 0)
        return;
    fix_addresses(attaching);
    zovn_loop_attach(loop_of(forwarder, attaching->place), (uint32_t)attaching->place,
                     attaching->attachment);
}

int32_t zovn_forwarder_attach(struct zovn_forwarder *forwarder,
                              const struct zovn_attachment *attachment,
                              const struct zovn_port_options *options, const char **problem) {
    struct attaching attaching = {
        .forwarder = forwarder, .attachment = attachment, .options = options};
    zovn_mailbox_send(&forwarder->threads.mailbox, attach, &attaching);
    *problem = attaching.problem;
    return attaching.place;
}

struct draining {
    struct zovn_forwarder *forwarder;
    int32_t place;
    bool drained;
};

static void drain(void *context) {
    struct draining *draining = context;
    draining->drained = zovn_switch_drain(draining->forwarder->vswitch, (uint32_t)draining->place);
}

void zovn_forwarder_drain(struct zovn_forwarder *forwarder, int32_t place) {
    struct draining draining = {.forwarder = forwarder, .place = place};
    for (int i = 0; i < DRAIN_TRIES && !draining.drained; i++) {
        if (i)
            nanosleep(&(struct timespec){.tv_nsec = DRAIN_PAUSE_NS}, NULL);
        zovn_mailbox_send(&forwarder->threads.mailbox, drain, &draining);
    }
}

struct detaching {
    struct zovn_forwarder *forwarder;
    int32_t place;
    struct zovn_counters *last;
};

static void detach(void *context) {
    const struct detaching *detaching = context;
    struct zovn_forwarder *forwarder = detaching->forwarder;
    zovn_loop_detach(loop_of(forwarder, detaching->place), (uint32_t)detaching->place);
    zovn_switch_remove(forwarder->vswitch, (uint32_t)detaching->place, detaching->last);
}

void zovn_forwarder_detach(struct zovn_forwarder *forwarder, int32_t place,
                           struct zovn_counters *last) {
    struct detaching detaching = {.forwarder = forwarder, .place = place, .last = last};
    zovn_mailbox_send(&forwarder->threads.mailbox, detach, &detaching);
}

struct rewaking {
    struct zovn_forwarder *forwarder;
    int32_t place;
    uint32_t which;
    int file;
    void (*call)(void *context);
    void *context;
};

static void rewake(void *context) {
    const struct rewaking *rewaking = context;
    zovn_loop_rewake(loop_of(rewaking->forwarder, rewaking->place), (uint32_t)rewaking->place,
                     rewaking->which, rewaking->file);
    rewaking->call(rewaking->context);
}

void zovn_forwarder_rewake(struct zovn_forwarder *forwarder, int32_t place, uint32_t which,
                           int file, void (*call)(void *context), void *context) {
    struct rewaking rewaking = {.forwarder = forwarder,
                                .place = place,
                                .which = which,
                                .file = file,
                                .call = call,
                                .context = context};
    zovn_mailbox_send(&forwarder->threads.mailbox, rewake, &rewaking);
}

void zovn_forwarder_call(struct zovn_forwarder *forwarder, void (*call)(void *context),
                         void *context) {
    zovn_mailbox_send(&forwarder->threads.mailbox, call, context);
}

struct looking {
    struct zovn_forwarder *forwarder;
    int32_t place;
    struct zovn_port_state *state;
};

static void look(void *context) {
    const struct looking *looking = context;
    const struct zovn_switch *vswitch = looking->forwarder->vswitch;
    uint32_t place = (uint32_t)looking->place;
    zovn_switch_counters(vswitch, place, &looking->state->counters);
    looking->state->fault = zovn_switch_fault(vswitch, place);
    looking->state->stalled = zovn_switch_stalled(vswitch, place);
    looking->state->thread = zovn_switch_part(vswitch, place);
}

void zovn_forwarder_look(struct zovn_forwarder *forwarder, int32_t place,
                         struct zovn_port_state *state) {
    struct looking looking = {.forwarder = forwarder, .place = place, .state = state};
    zovn_mailbox_send(&forwarder->threads.mailbox, look, &looking);
}

struct naps {
    const struct zovn_forwarder *forwarder;
    uint64_t naps, missed;
};

static void count_naps(void *context) {
    struct naps *naps = context;
    const struct zovn_threads *threads = &naps->forwarder->threads;
    for (uint32_t i = 0; i < threads->count; i++) {
        naps->naps += threads->each[i].loop.nap.count;
        naps->missed += threads->each[i].loop.nap.missed;
    }
}

uint64_t zovn_forwarder_naps(struct zovn_forwarder *forwarder, uint64_t *missed) {
    struct naps naps = {.forwarder = forwarder};
    zovn_mailbox_send(&forwarder->threads.mailbox, count_naps, &naps);
    *missed = naps.missed;
    return naps.naps;
}
