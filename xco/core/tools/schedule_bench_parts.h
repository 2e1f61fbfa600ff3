/* Shared by the benchmark's parts: networks, Poisson demands, and a run's measurements. */
#ifndef XCO_TOOLS_SCHEDULE_BENCH_PARTS_H
#define XCO_TOOLS_SCHEDULE_BENCH_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/schedule.h"

#define SLICE_NS 2000000u /* a timeslice of 2 ms, of simulated time */

struct network {
    uint32_t hosts;
    uint32_t switches;
    struct xco_tree_link *links;
    bool greedy; /* every host always has a backlog for some others */
    double rate; /* demand per host and slice that loads the busiest link as requested */
};

/* A switch without bottleneck for all (Fastpass's), or the paper's tree of racks and rows. */
int network_make(struct network *network, uint32_t hosts, bool tree, double load);
void network_free(struct network *network);

/* So many slices for a destination, from an instant on. */
struct demand {
    uint64_t at_ns;
    uint32_t host;
    uint32_t destination;
    uint32_t slices;
};

struct demands {
    struct demand *all;
    size_t count;
    uint32_t hosts;
    bool endless;
    uint32_t *matrix;    /* slices left, by host and destination, for few hosts */
    struct left *table;  /* or a table of those above 0 */
    size_t entries;
    unsigned bits;
};

/* Greedy: eight destinations per host, without end. Otherwise: Poisson arrivals per host,
 * uniformly random destinations, exponential sizes with mean 10 slices. */
int demands_make(struct demands *demands, const struct network *network, uint32_t slices,
                 uint64_t seed);
void demands_free(struct demands *demands);
/* Count slices up, and down by one; `left` is the rest. 0, or -ENOMEM. */
int demands_more(struct demands *demands, const struct demand *demand, uint32_t *left);
void demands_one_less(struct demands *demands, uint32_t host, uint32_t destination, uint32_t *left);

/* The three calls of a scheduler in the benchmark. */
struct contestant {
    void *state;
    int (*add)(void *state, uint64_t now_ns, uint32_t host, uint32_t destination,
               struct xco_grant *grants);
    int (*expired)(void *state, uint64_t now_ns, uint32_t host, struct xco_grant *grants);
    int (*gave_up)(void *state, uint64_t now_ns, uint32_t host, struct xco_grant *grants);
};

struct result {
    uint64_t events;
    uint64_t decisions;
    uint64_t slices; /* of simulated time */
    double seconds;  /* CPU time of this thread */
    double p50_us, p99_us, p999_us, max_us; /* of one event */
};

/* Algorithm 1 as published, walking whole contention groups (tools/schedule_bench_published.c). */
struct published;
struct published *published_new(const struct network *network);
void published_free(struct published *published);
struct contestant published_contestant(struct published *published);

struct bench {
    struct demands *demands;
    uint32_t warm_slices;
    double most_seconds; /* latest end of the measured part, if demands last */
    bool latency;        /* time each call, which costs throughput */
};

/* 0, or -ENOMEM or a contestant's error. */
int bench_events(const struct bench *bench, struct contestant contestant, struct result *result);

double bench_seconds(void); /* monotonic clock */
double bench_cpu_seconds(void); /* of this thread */
void result_latency(struct result *result, uint32_t *took_ns, size_t count);

#endif
