/* Measures aligned slots: all demands of a slot are added, then all of the next slot is decided. */
#include <errno.h>
#include <stdlib.h>

#include "schedule_bench.h"

enum { MOST_TIMED = 1 << 20 };

struct drive {
    struct xco_schedule *schedule;
    struct demands *demands;
    struct xco_grant *grants;
    uint32_t *done; /* hosts whose destination has nothing left */
    uint32_t *took_ns;
    size_t next; /* demand */
    uint64_t slot;
    struct result *result;
};

static int add_demands(struct drive *drive) {
    uint64_t until_ns = (drive->slot + 1) * SLICE_NS;
    for (; drive->next < drive->demands->count; drive->next++) {
        const struct demand *demand = &drive->demands->all[drive->next];
        if (demand->at_ns >= until_ns)
            return 0;
        uint32_t left;
        int result = demands_more(drive->demands, demand, &left);
        if (result == 0 && left == demand->slices) /* it had none */
            result = xco_schedule_add(drive->schedule, demand->at_ns, demand->host,
                                      demand->destination, drive->grants);
        if (result < 0)
            return result;
    }
    return !drive->demands->endless;
}

/* Returns 0 to go on, 1 when no demands are left. */
static int one_slot(struct drive *drive) {
    int over = add_demands(drive);
    if (over != 0)
        return over;
    int count = xco_schedule_slot(drive->schedule, drive->slot * SLICE_NS, drive->grants);
    size_t done = 0;
    for (int i = 0; i < count; i++) {
        const struct xco_grant *grant = &drive->grants[i];
        uint32_t left;
        demands_one_less(drive->demands, grant->host, grant->destination, &left);
        if (left == 0)
            drive->done[done++] = grant->host;
    }
    drive->slot++;
    drive->result->events++;
    drive->result->decisions += (uint64_t)(count > 0 ? count : 0);
    return count < 0 ? count : xco_schedule_gave_up_all(drive->schedule, drive->done, done);
}

static int measure(const struct bench *bench, struct drive *drive) {
    int status = 0;
    while (status == 0 && drive->slot < bench->warm_slices)
        status = one_slot(drive);
    *drive->result = (struct result){0};
    double start = bench_seconds(), now = start, cpu = bench_cpu_seconds();
    while (status == 0 && now < start + bench->most_seconds) {
        double began = now;
        status = one_slot(drive);
        now = bench_seconds(); /* one call a slot costs next to nothing */
        size_t slot = (size_t)drive->result->events - 1;
        if (status == 0 && slot < MOST_TIMED)
            drive->took_ns[slot] = (uint32_t)(1e9 * (now - began));
    }
    drive->result->seconds = bench_cpu_seconds() - cpu;
    drive->result->slices = drive->result->events;
    size_t timed = (size_t)drive->result->events;
    result_latency(drive->result, drive->took_ns, timed < MOST_TIMED ? timed : MOST_TIMED);
    return status < 0 ? status : 0;
}

int bench_slots(const struct bench *bench, struct xco_schedule *schedule, struct result *result) {
    struct drive drive = {.schedule = schedule, .demands = bench->demands, .result = result};
    size_t hosts = bench->demands->hosts;
    drive.grants = malloc(hosts * sizeof *drive.grants);
    drive.done = malloc(hosts * sizeof *drive.done);
    drive.took_ns = calloc(MOST_TIMED, sizeof *drive.took_ns);
    int status = drive.grants && drive.done && drive.took_ns ? measure(bench, &drive) : -ENOMEM;
    free(drive.grants);
    free(drive.done);
    free(drive.took_ns);
    return status;
}
