/* Hostile guests on a switch, with two honest peers whose frames must arrive all the same.
 *
 * Usage: zovn-fuzz-rings [seconds [seed]]. Each trial has two hostile guests; in every second one a
 * thread changes their rings while the switch reads them. The switch has one to three parts, which are
 * stepped in any order. After each step of one part, and now and then of several, all laws of the switch
 * are checked. Exits with 1, and prints what it found. Built with sanitizers, see Makefile. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ports/memory_port.h"
#include "switch/switch.h"
#include "tools/random.h"
#include "tools/ring_fuzz.h"

enum { HOSTILE = 2, STEPS = 300, FRAME_BYTES = 128 };

struct trial {
    uint64_t random;
    struct hostile guests[HOSTILE];
    struct zovn_switch *vswitch;
    struct zovn_port *honest[2];
    uint32_t sent, received; /* from the first honest peer to the second */
    uint64_t now_ns;
    uint32_t parts;
    bool stop;
};

static struct totals {
    uint64_t trials, frames, delivered, more, malformed, stopped;
} totals;

/* From the honest peer 0 or to it; the addresses are static, so no guest can take them. */
static void make_frame(uint8_t *bytes, uint32_t number) {
    memset(bytes, 0, FRAME_BYTES);
    bytes[0] = bytes[6] = 2;
    bytes[5] = 1;
    bytes[12] = 0x88;
    bytes[13] = 0xb5;
    memcpy(bytes + 20, &number, sizeof number);
}

static void send_honest(struct trial *trial) {
    uint8_t bytes[FRAME_BYTES];
    make_frame(bytes, trial->sent);
    bytes[11] = 0x77;
    trial->sent += zovn_memory_port_send(trial->honest[0], bytes, sizeof bytes, NULL);
}

/* What guests send may arrive as well; what the honest peer sent arrives whole and in order. */
static const char *receive_honest(struct trial *trial) {
    static uint8_t got[ZOVN_MOST_BYTES];
    uint8_t expected[FRAME_BYTES];
    for (uint32_t length; (length = zovn_memory_port_receive(trial->honest[1], got, NULL));) {
        if (length != FRAME_BYTES || got[11] != 0x77 || got[5] != 1 || got[12] != 0x88)
            continue;
        make_frame(expected, trial->received);
        expected[11] = 0x77;
        if (memcmp(got, expected, sizeof expected) != 0)
            return "an honest frame is lost, repeated, reordered or damaged";
        trial->received++;
    }
    return NULL;
}

static void *disturb(void *context) {
    struct trial *trial = context;
    while (!__atomic_load_n(&trial->stop, __ATOMIC_RELAXED))
        for (uint32_t i = 0; i < HOSTILE; i++)
            hostile_act(&trial->guests[i]);
    return NULL;
}

static struct zovn_settings settings_of(struct trial *trial) {
    struct zovn_settings settings;
    zovn_settings_default(&settings);
    settings.parked = 1 + (uint32_t)zovn_draw(&trial->random, 3);
    settings.threads = trial->parts = 1 + (uint32_t)zovn_draw(&trial->random, 3);
    for (uint32_t i = 0; i < 8; i++) {
        settings.class_of_priority[i] = (uint8_t)i;
        settings.classes[i].mark_bytes = zovn_draw(&trial->random, 2) * 100;
    }
    return settings;
}

/* Ports 0 and 1 are honest peers, in the same VLAN as the guests. */
static void begin(struct trial *trial, uint64_t seed) {
    static const uint8_t FIRST[6] = {2, 0, 0, 0, 0, 0x77}, SECOND[6] = {2, 0, 0, 0, 0, 1};
    struct zovn_port_settings access = {.vlan = 1}, trunk = {.vlan = 1, .trunk = 1, .trust = 1};
    *trial = (struct trial){.random = seed | 1};
    const char *problem;
    struct zovn_settings settings = settings_of(trial);
    trial->vswitch = zovn_switch_new(&settings, &problem);
    for (uint32_t i = 0; i < 2; i++) {
        trial->honest[i] = zovn_memory_port_new(16, 4);
        zovn_switch_add(trial->vswitch, trial->honest[i], &access, &problem);
    }
    zovn_switch_fix(trial->vswitch, 0, 1, FIRST);
    zovn_switch_fix(trial->vswitch, 1, 1, SECOND);
    for (uint32_t i = 0; i < HOSTILE; i++) {
        hostile_begin(&trial->guests[i], i, zovn_draw(&trial->random, UINT32_MAX));
        struct zovn_port *port = hostile_port(&trial->guests[i]);
        zovn_switch_add(trial->vswitch, port, i ? &trunk : &access, &problem);
    }
}

static void count(const struct zovn_counters *counters) {
    totals.frames += counters->in;
    totals.delivered += counters->delivered;
    totals.malformed += counters->drops[ZOVN_MALFORMED];
}

/* What goes out is what is delivered, and more if frames are cut into segments. */
static uint64_t more_out(const struct trial *trial) {
    struct zovn_counters counters;
    uint64_t more = 0;
    for (uint32_t i = 0; zovn_switch_counters(trial->vswitch, i, &counters); i++)
        more += counters.out - counters.delivered;
    return more;
}

static void end(struct trial *trial) {
    struct zovn_counters counters = {0};
    totals.more += more_out(trial);
    for (uint32_t i = 2; i < 2 + HOSTILE; i++) {
        totals.stopped += zovn_switch_fault(trial->vswitch, i) != ZOVN_SOUND;
        zovn_switch_remove(trial->vswitch, i, &counters);
        count(&counters);
    }
    zovn_switch_free(trial->vswitch);
    for (uint32_t i = 0; i < HOSTILE; i++)
        hostile_end(&trial->guests[i]);
    totals.trials++;
}

/* Step all parts from a drawn one on, or only that. */
static void step_parts(struct trial *trial, bool all) {
    uint32_t first = (uint32_t)zovn_draw(&trial->random, trial->parts), shown;
    for (uint32_t i = 0; i < (all ? trial->parts : 1); i++)
        zovn_switch_step_part(trial->vswitch, (first + i) % trial->parts, trial->now_ns, &shown);
}

/* The honest receiver is slow, so that frames wait; but it takes some whenever much time passes, and
 * is never stalled. */
static const char *step(struct trial *trial, bool receive) {
    const char *problem = receive ? receive_honest(trial) : NULL;
    bool late = receive && zovn_draw(&trial->random, 12) == 0;
    trial->now_ns += late ? 600000000 : 1000;
    send_honest(trial);
    step_parts(trial, late);
    if (problem || (trial->parts > 1 && zovn_draw(&trial->random, 4)))
        return problem;
    zovn_switch_settle(trial->vswitch);
    return zovn_switch_check(trial->vswitch);
}

/* All honest frames must be through when the guests stand still. */
static const char *run(struct trial *trial, bool threaded) {
    const char *problem = NULL;
    pthread_t thread;
    threaded = threaded && pthread_create(&thread, NULL, disturb, trial) == 0;
    for (uint32_t i = 0; i < STEPS && !problem; i++) {
        for (uint64_t acts = zovn_draw(&trial->random, 20); acts && !threaded; acts--)
            hostile_act(&trial->guests[acts % HOSTILE]);
        problem = step(trial, zovn_draw(&trial->random, 4) == 0);
    }
    __atomic_store_n(&trial->stop, true, __ATOMIC_RELAXED);
    if (threaded)
        pthread_join(thread, NULL);
    uint32_t sent = trial->sent;
    for (uint32_t i = 0; i < STEPS && !problem && trial->received < sent; i++)
        problem = step(trial, true);
    return !problem && trial->received < sent ? "an honest frame is late" : problem;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        struct trial trial;
        begin(&trial, seed * 0x9e3779b97f4a7c15u);
        const char *problem = run(&trial, seed % 2);
        end(&trial);
        if (problem) {
            printf("seed %" PRIu64 ": %s\n", seed, problem);
            return 1;
        }
        seed++;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - begun.tv_sec) + (double)(now.tv_nsec - begun.tv_nsec) / 1e9 <
             seconds);
    printf("%" PRIu64 " trials, %" PRIu64 " frames of guests, %" PRIu64 " delivered, %" PRIu64
           " more as segments, %" PRIu64 " malformed, %" PRIu64 " ports stopped\n",
           totals.trials, totals.frames, totals.delivered, totals.more, totals.malformed,
           totals.stopped);
    return 0;
}
