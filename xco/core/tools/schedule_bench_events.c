/* Measures an event-driven scheduler: demands arrive, slices end, queues run dry. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "tools/schedule_bench_parts.h"

double bench_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double bench_cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void result_latency(struct result *result, uint32_t *took_ns, size_t count) {
    if (count == 0)
        return;
    qsort(took_ns, count, sizeof *took_ns, compare);
    result->p50_us = took_ns[count / 2] / 1e3;
    result->p99_us = took_ns[count - 1 - count / 100] / 1e3;
    result->p999_us = took_ns[count - 1 - count / 1000] / 1e3;
    result->max_us = took_ns[count - 1] / 1e3;
}

/* All slices have one length, so they end in the order in which they began: a ring is enough. */
struct ends {
    uint64_t *at_ns;
    uint32_t *host;
    uint32_t head, tail, mask;
};

enum { MOST_TIMED = 1 << 22, WARM_UP = 10 };

struct drive {
    struct contestant contestant;
    struct demands *demands;
    struct xco_grant *grants;
    uint32_t *sending; /* by host */
    struct ends ends;
    size_t next; /* demand */
    uint64_t now_ns;
    uint32_t *took_ns;
    size_t took;
    struct result *result;
};

static int drive_make(struct drive *drive, const struct bench *bench) {
    uint32_t room = 1;
    while (room < bench->demands->hosts + 1)
        room *= 2;
    drive->demands = bench->demands;
    drive->grants = malloc((bench->demands->hosts + 1) * sizeof *drive->grants);
    drive->sending = malloc(bench->demands->hosts * sizeof *drive->sending);
    drive->ends = (struct ends){.mask = room - 1};
    drive->ends.at_ns = malloc(room * sizeof *drive->ends.at_ns);
    drive->ends.host = malloc(room * sizeof *drive->ends.host);
    drive->took_ns = bench->latency ? malloc(MOST_TIMED * sizeof *drive->took_ns) : NULL;
    bool whole = drive->grants && drive->sending && drive->ends.at_ns && drive->ends.host;
    return whole && (drive->took_ns || !bench->latency) ? 0 : -ENOMEM;
}

static void drive_free(struct drive *drive) {
    free(drive->grants);
    free(drive->sending);
    free(drive->ends.at_ns);
    free(drive->ends.host);
    free(drive->took_ns);
}

static void take_grants(struct drive *drive, int count) {
    for (int i = 0; i < count; i++) {
        const struct xco_grant *grant = &drive->grants[i];
        if (grant->destination == XCO_NONE)
            continue;
        drive->sending[grant->host] = grant->destination;
        drive->ends.at_ns[drive->ends.tail & drive->ends.mask] = drive->now_ns + SLICE_NS;
        drive->ends.host[drive->ends.tail++ & drive->ends.mask] = grant->host;
        drive->result->decisions++;
    }
}

static int arrival(struct drive *drive, const struct demand *demand) {
    uint32_t left;
    if (demands_more(drive->demands, demand, &left))
        return -ENOMEM;
    drive->now_ns = demand->at_ns;
    if (left > demand->slices)
        return -EAGAIN; /* no event: it is backlogged already */
    return drive->contestant.add(drive->contestant.state, drive->now_ns, demand->host,
                                 demand->destination, drive->grants);
}

static int slice_end(struct drive *drive) {
    uint32_t host = drive->ends.host[drive->ends.head & drive->ends.mask];
    drive->now_ns = drive->ends.at_ns[drive->ends.head++ & drive->ends.mask];
    uint32_t left;
    demands_one_less(drive->demands, host, drive->sending[host], &left);
    int (*event)(void *, uint64_t, uint32_t, struct xco_grant *) =
        left ? drive->contestant.expired : drive->contestant.gave_up;
    return event(drive->contestant.state, drive->now_ns, host, drive->grants);
}

/* 0: continue; 1: no demands are left. */
static int one_event(struct drive *drive) {
    bool more = drive->next < drive->demands->count;
    bool ends = drive->ends.head != drive->ends.tail;
    if (!more && !(ends && drive->demands->endless))
        return 1;
    const struct demand *demand = &drive->demands->all[more ? drive->next : 0];
    uint64_t end_ns = drive->ends.at_ns[drive->ends.head & drive->ends.mask];
    int count;
    if (ends && (!more || end_ns <= demand->at_ns)) {
        count = slice_end(drive);
    } else {
        drive->next++;
        count = arrival(drive, demand);
    }
    if (count == -EAGAIN)
        return 0;
    if (count < 0)
        return count;
    drive->result->events++;
    take_grants(drive, count);
    return 0;
}

static int timed_event(struct drive *drive) {
    double start = bench_seconds();
    int result = one_event(drive);
    double took = 1e9 * (bench_seconds() - start);
    if (drive->took < MOST_TIMED)
        drive->took_ns[drive->took++] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
    return result;
}

/* Continue until the simulated time, or until the real time has passed. */
static int drive_until(struct drive *drive, uint64_t until_ns, double deadline) {
    int result = 0;
    for (uint32_t i = 0; result == 0 && drive->now_ns < until_ns; i++) {
        result = drive->took_ns ? timed_event(drive) : one_event(drive);
        if (i % 64 == 0 && bench_seconds() > deadline)
            break;
    }
    return result < 0 ? result : 0;
}

int bench_events(const struct bench *bench, struct contestant contestant, struct result *result) {
    struct drive drive = {.contestant = contestant, .result = result};
    int status = drive_make(&drive, bench);
    double start = bench_seconds();
    *result = (struct result){0};
    if (status == 0) /* fill the queues first; a slow contestant gets longer for that */
        status = drive_until(&drive, (uint64_t)bench->warm_slices * SLICE_NS,
                             start + WARM_UP * bench->most_seconds);
    uint64_t from_ns = drive.now_ns;
    *result = (struct result){0};
    drive.took = 0;
    start = bench_seconds();
    double cpu = bench_cpu_seconds();
    if (status == 0)
        status = drive_until(&drive, UINT64_MAX, start + bench->most_seconds);
    result->seconds = bench_cpu_seconds() - cpu;
    result->slices = (drive.now_ns - from_ns) / SLICE_NS;
    if (status == 0 && bench->latency)
        result_latency(result, drive.took_ns, drive.took);
    drive_free(&drive);
    return status;
}
