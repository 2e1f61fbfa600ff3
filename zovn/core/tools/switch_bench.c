/* The cost of a frame in the switch alone: guests' rings in this process, and no guests.
 *
 * Usage: zovn-bench PORTS BYTES SECONDS [LEFT [THREADS]]. All ports send to all others, as fast as they can. Only
 * the step is timed; what a guest would do to its rings between two steps is not. Prints JSON.
 * LEFT is what senders leave to others: `checksum`, or `segments` of 1,448 bytes, which the switch
 * finishes; or `whole`, the same for receivers that take it. Frames are TCP's then.
 * With THREADS, so many step their parts of the switch and play the guests of these, and all the time
 * counts. */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "switch/switch.h"
#include "tools/bench_guest.h"

enum { WARM_UP = 200, MOST_BYTES = 60000, PLAIN_BYTES = BENCH_BUFFER_BYTES - BENCH_HEADER };

struct options {
    uint32_t ports, bytes;
    double seconds;
    enum left left;
    uint32_t threads; /* 0: steps are timed */
};

struct bench {
    struct options options;
    struct bench_guest *guests;
    struct zovn_switch *vswitch;
    atomic_bool ends;
};

struct worker {
    struct bench *bench;
    uint32_t part;
    pthread_t thread;
};

static void begin(struct bench *bench) {
    const struct options *options = &bench->options;
    struct zovn_settings settings;
    zovn_settings_default(&settings);
    settings.threads = options->threads ? options->threads : 1;
    const char *problem;
    bench->guests = bench_room(options->ports * sizeof *bench->guests);
    bench->vswitch = zovn_switch_new(&settings, &problem);
    struct zovn_port_settings access = {.vlan = 1};
    for (uint32_t i = 0; i < options->ports; i++) {
        uint8_t address[6] = {2, 0, 0, 0, 0, (uint8_t)i};
        struct zovn_port *port =
            bench_guest_port(&bench->guests[i], i, options->ports, options->bytes, options->left);
        zovn_switch_add(bench->vswitch, port, &access, &problem);
        zovn_switch_fix(bench->vswitch, i, 1, address);
    }
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Frames that went out: a sender's frame may be several. */
static uint64_t out_of(const struct zovn_switch *vswitch, uint32_t ports) {
    struct zovn_counters counters;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < ports && zovn_switch_counters(vswitch, i, &counters); i++)
        sum += counters.out;
    return sum;
}

/* Return how long one step took. */
static double step_ns(struct bench *bench) {
    double begun = now_ns();
    zovn_switch_step(bench->vswitch, (uint64_t)begun);
    double took = now_ns() - begun;
    for (uint32_t i = 0; i < bench->options.ports; i++)
        bench_guest_refill(&bench->guests[i]);
    return took;
}

/* Return how long all steps took. */
static double run_steps(struct bench *bench) {
    double took = 0, end = now_ns() + bench->options.seconds * 1e9;
    while (now_ns() < end)
        took += step_ns(bench);
    return took;
}

/* A thread of the switch that moves nothing sleeps soon: here it yields, as the CPU may be shared. */
static void *work(void *context) {
    const struct worker *worker = context;
    struct bench *bench = worker->bench;
    uint32_t shown;
    while (!atomic_load(&bench->ends)) {
        if (!zovn_switch_step_part(bench->vswitch, worker->part, (uint64_t)now_ns(), &shown))
            sched_yield();
        for (uint32_t i = 0; i < bench->options.ports; i++)
            if (zovn_switch_part(bench->vswitch, i) == (int32_t)worker->part)
                bench_guest_refill(&bench->guests[i]);
    }
    return NULL;
}

/* Return how long all of that took. */
static double run_threads(struct bench *bench) {
    struct worker workers[ZOVN_MOST_THREADS];
    double begun = now_ns(), seconds = bench->options.seconds;
    atomic_store(&bench->ends, false);
    for (uint32_t i = 0; i < bench->options.threads; i++) {
        workers[i] = (struct worker){.bench = bench, .part = i};
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    nanosleep(&(struct timespec){(time_t)seconds, (long)(1e9 * (seconds - (time_t)seconds))}, NULL);
    atomic_store(&bench->ends, true);
    for (uint32_t i = 0; i < bench->options.threads; i++)
        pthread_join(workers[i].thread, NULL);
    return now_ns() - begun;
}

static bool read_left(const char *word, enum left *left) {
    static const char *const WORDS[] = {"nothing", "checksum", "segments", "whole"};
    for (uint32_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (strcmp(word, WORDS[i]) == 0) {
            *left = (enum left)i;
            return true;
        }
    return false;
}

static bool read_options(int argc, char **argv, struct options *options) {
    if (argc < 4 || argc > 6 || (argc > 4 && !read_left(argv[4], &options->left)))
        return false;
    options->ports = (uint32_t)atoi(argv[1]);
    options->bytes = (uint32_t)atoi(argv[2]);
    options->seconds = atof(argv[3]);
    options->threads = argc > 5 ? (uint32_t)atoi(argv[5]) : 0;
    uint32_t most = options->left < SEGMENTS ? PLAIN_BYTES : MOST_BYTES;
    return options->ports >= 2 && options->ports <= ZOVN_MOST_PORTS && options->bytes >= 60 &&
           options->bytes <= most && options->threads <= ZOVN_MOST_THREADS;
}

int main(int argc, char **argv) {
    static struct bench bench;
    if (!read_options(argc, argv, &bench.options)) {
        fputs(
            "usage: zovn-bench PORTS BYTES SECONDS [nothing|checksum|segments|whole [THREADS]], with "
            "2 to 72 ports, 60 to 2036 bytes, or to 60000 for segments, and 1 to 8 threads\n",
            stderr);
        return 2;
    }
    begin(&bench);
    for (uint32_t i = 0; !bench.options.threads && i < WARM_UP; i++)
        step_ns(&bench);
    uint64_t before = out_of(bench.vswitch, bench.options.ports);
    double took = bench.options.threads ? run_threads(&bench) : run_steps(&bench);
    uint64_t frames = out_of(bench.vswitch, bench.options.ports) - before;
    printf("{\"frames\": %" PRIu64 ", \"busy_ns\": %.0f}\n", frames, took);
    return 0;
}
