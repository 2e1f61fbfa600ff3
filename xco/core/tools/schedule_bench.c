/* Measures the schedulers on Poisson demands; one JSON object a run on standard output.
 *
 * Usage: xco-bench events|fair|published|demands star|tree|greedy \
 *                  HOSTS LOAD SECONDS SLICES SEED
 * `star`: one switch; `tree`: the paper's racks and rows; `greedy`: those, and no host ever idle.
 * `demands` writes the demands themselves: "at_ns host destination slices" a line. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/schedule_bench_parts.h"

struct run {
    const char *what;
    struct network network;
    uint32_t slices;
    uint64_t seed;
    double seconds;
};

static struct xco_schedule *schedule_of(const struct run *run) {
    struct xco_schedule_options options = {
        .hosts = run->network.hosts,
        .switches = run->network.switches,
        .links = run->network.links,
        .policy = strcmp(run->what, "fair") == 0 ? XCO_FAIR : XCO_PUBLISHED,
        .limit_rates = 1,
        .threshold_ns = XCO_FOREVER,
        .patience_ns = 100 * (uint64_t)SLICE_NS,
        .memory_ns = 50 * (uint64_t)SLICE_NS,
        .least_share = 1.0,
    };
    return xco_schedule_new(&options, NULL);
}

static int add(void *state, uint64_t now_ns, uint32_t host, uint32_t destination,
               struct xco_grant *grants) {
    return xco_schedule_add(state, now_ns, host, destination, grants);
}

static int expired(void *state, uint64_t now_ns, uint32_t host, struct xco_grant *grants) {
    return xco_schedule_expired(state, now_ns, host, grants);
}

static int gave_up(void *state, uint64_t now_ns, uint32_t host, struct xco_grant *grants) {
    return xco_schedule_gave_up(state, now_ns, host, grants);
}

static int measure_published(const struct run *run, const struct bench *bench,
                             struct result *result) {
    struct published *published = published_new(&run->network);
    if (!published)
        return -ENOMEM;
    int status = bench_events(bench, published_contestant(published), result);
    published_free(published);
    return status;
}

static int measure_native(const struct run *run, const struct bench *bench, struct result *result,
                          size_t *bytes) {
    struct xco_schedule *schedule = schedule_of(run);
    if (!schedule)
        return -ENOMEM;
    struct contestant native = {schedule, add, expired, gave_up};
    int status = bench_events(bench, native, result);
    *bytes = xco_schedule_bytes(schedule);
    xco_schedule_free(schedule);
    return status;
}

/* A run uses up its demands, so the two runs, for speed and for latency, have their own. */
static int measure(const struct run *run, bool latency, struct result *result, size_t *bytes) {
    struct demands demands;
    int status = demands_make(&demands, &run->network, run->slices, run->seed);
    struct bench bench = {&demands, run->slices / 6, run->seconds, latency};
    if (status == 0 && strcmp(run->what, "published") == 0)
        status = measure_published(run, &bench, result);
    else if (status == 0)
        status = measure_native(run, &bench, result, bytes);
    demands_free(&demands);
    return status;
}

static void print_result(const struct run *run, const struct result *speed,
                         const struct result *latency, size_t bytes) {
    printf("{\"events\": %" PRIu64 ", \"decisions\": %" PRIu64 ", \"slices\": %" PRIu64
           ", \"seconds\": %.6f, ",
           speed->events, speed->decisions, speed->slices, speed->seconds);
    printf("\"decisions_per_s\": %.0f, \"events_per_s\": %.0f, \"utilisation\": %.4f, ",
           (double)speed->decisions / speed->seconds, (double)speed->events / speed->seconds,
           (double)speed->decisions / (double)(speed->slices ? speed->slices : 1) /
               run->network.hosts);
    printf("\"p50_us\": %.3f, \"p99_us\": %.3f, \"p999_us\": %.3f, \"max_us\": %.3f, "
           "\"bytes\": %zu}\n",
           latency->p50_us, latency->p99_us, latency->p999_us, latency->max_us, bytes);
}

static int print_demands(const struct run *run) {
    struct demands demands;
    int status = demands_make(&demands, &run->network, run->slices, run->seed);
    for (size_t i = 0; status == 0 && i < demands.count; i++) {
        const struct demand *demand = &demands.all[i];
        printf("%" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu32 "\n", demand->at_ns, demand->host,
               demand->destination, demand->slices);
    }
    demands_free(&demands);
    return status;
}

static int measure_both(const struct run *run) {
    struct result speed, latency;
    size_t bytes = 0;
    int status = measure(run, false, &speed, &bytes);
    if (status == 0)
        status = measure(run, true, &latency, &bytes);
    if (status == 0)
        print_result(run, &speed, &latency, bytes);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 8 || !strstr("events fair published demands", argv[1]))
        return fprintf(stderr, "usage: see tools/schedule_bench.c\n"), 2;
    struct run run = {.what = argv[1],
                      .seconds = strtod(argv[5], NULL),
                      .slices = (uint32_t)strtoul(argv[6], NULL, 10),
                      .seed = strtoull(argv[7], NULL, 10)};
    uint32_t hosts = (uint32_t)strtoul(argv[3], NULL, 10);
    double load = strtod(argv[4], NULL);
    if (hosts < 2 || load <= 0 || load >= 1 || run.seconds <= 0 || run.slices == 0)
        return fprintf(stderr, "usage: see tools/schedule_bench.c\n"), 2;
    int status = network_make(&run.network, hosts, strcmp(argv[2], "star") != 0, load);
    run.network.greedy = strcmp(argv[2], "greedy") == 0;
    if (status == 0)
        status = strcmp(run.what, "demands") == 0 ? print_demands(&run) : measure_both(&run);
    network_free(&run.network);
    if (status < 0)
        fprintf(stderr, "xco-bench: %s\n", strerror(-status));
    return status < 0;
}
