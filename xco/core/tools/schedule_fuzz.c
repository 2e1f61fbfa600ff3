/* Random topologies and events for the scheduler, with a check of its invariants after each
 * event.
 *
 * Usage: xco-fuzz-schedule [seconds [seed]]. Exits with 1, and prints what it found, when an
 * invariant does not hold or a flow waits longer than scheduler/schedule.h promises. Built with
 * sanitizers, see Makefile. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "scheduler/schedule.h"

enum { MOST_NODES = 40, EVENTS = 400 };
static const uint64_t SLICE_NS = 1000;

struct trial {
    uint64_t random;
    struct xco_tree_link links[MOST_NODES];
    struct xco_schedule_options options;
    struct xco_schedule *schedule;
    struct xco_grant grants[MOST_NODES];
    uint64_t now_ns;
    uint64_t ends_ns[MOST_NODES];                /* of slices; 0: none */
    uint64_t since_ns[MOST_NODES][MOST_NODES];   /* when a flow began to wait; 0: it does not */
    uint64_t bound_ns[MOST_NODES][MOST_NODES];   /* deadline of its service */
    bool backlogged[MOST_NODES][MOST_NODES];
    uint32_t flows;
};

/* xorshift64*, Vigna 2016: the same seed gives the same trial everywhere. */
static uint64_t draw(struct trial *t, uint64_t below) {
    t->random ^= t->random >> 12;
    t->random ^= t->random << 25;
    t->random ^= t->random >> 27;
    return (t->random * 0x2545f4914f6cdd1du >> 33) % below;
}

static void draw_topology(struct trial *t) {
    static const uint64_t SPEEDS[] = {1, 1, 1, 2, 3, 10, 11, 14, 40};
    uint32_t switches = 1 + (uint32_t)draw(t, 6), hosts = 2 + (uint32_t)draw(t, 18), made = 0;
    for (uint32_t i = 1; i < switches; i++)
        t->links[made++] = (struct xco_tree_link){hosts + i, hosts + (uint32_t)draw(t, i), 0};
    for (uint32_t x = 0; x < hosts; x++)
        t->links[made++] = (struct xco_tree_link){x, hosts + (uint32_t)draw(t, switches), 0};
    bool alike = draw(t, 2);
    for (uint32_t i = 0; i < made; i++)
        t->links[i].capacity_bps = alike ? 1000 : 1000 * SPEEDS[draw(t, 9)];
    t->options = (struct xco_schedule_options){
        .hosts = hosts,
        .switches = switches,
        .links = t->links,
        .limit_rates = (uint32_t)draw(t, 2),
        .threshold_ns = draw(t, 2) ? XCO_FOREVER : draw(t, 2 * SLICE_NS),
        .patience_ns = draw(t, 4) ? draw(t, 20 * SLICE_NS) : XCO_FOREVER,
        .memory_ns = 1 + draw(t, 50 * SLICE_NS),
        .least_share = draw(t, 2) ? 1.0 : 0.5,
    };
    t->options.policy = (uint32_t)draw(t, 2);
}

/* A flow begins to wait (again): the promised bound depends on how many are backlogged now. */
static void waits(struct trial *t, uint32_t x, uint32_t d) {
    if (t->since_ns[x][d] || !xco_schedule_full_rate_bps(t->schedule, x, d))
        return;
    t->since_ns[x][d] = t->now_ns;
    t->bound_ns[x][d] = t->options.patience_ns == XCO_FOREVER
                            ? UINT64_MAX
                            : t->now_ns + t->options.patience_ns + (t->flows + 1) * SLICE_NS;
}

static void set_backlogged(struct trial *t, uint32_t x, uint32_t d, bool is) {
    t->flows += (uint32_t)is - (uint32_t)t->backlogged[x][d];
    t->backlogged[x][d] = is;
    if (!is)
        t->since_ns[x][d] = 0;
}

/* A host with a grant no longer waits; a stopped or preempted one waits again. */
static const char *follow(struct trial *t, int count, const struct xco_grant *before) {
    if (count < 0 || count > (int)t->options.hosts)
        return "an event was refused or answered with too many grants";
    for (int i = 0; i < count; i++) {
        struct xco_grant got = t->grants[i];
        t->ends_ns[got.host] = got.destination == XCO_NONE ? 0 : t->now_ns + SLICE_NS;
        if (got.destination != XCO_NONE && !t->backlogged[got.host][got.destination])
            return "a grant for what is not backlogged";
        if (got.destination != XCO_NONE)
            t->since_ns[got.host][got.destination] = 0;
    }
    for (uint32_t x = 0; x < t->options.hosts; x++) {
        uint32_t d = before[x].destination;
        bool on = d == xco_schedule_current(t->schedule, x).destination;
        if (d != XCO_NONE && !on && t->backlogged[x][d])
            waits(t, x, d);
    }
    return NULL;
}

static const char *overdue(const struct trial *t) {
    for (uint32_t x = 0; x < t->options.hosts; x++)
        for (uint32_t d = 0; d < t->options.hosts; d++)
            if (t->since_ns[x][d] && t->now_ns > t->bound_ns[x][d])
                return "a flow waits longer than promised";
    return NULL;
}

static int report(struct trial *t, uint32_t x) {
    uint32_t group[MOST_NODES];
    size_t count = 0;
    for (uint32_t d = 0; d < t->options.hosts; d++) {
        bool is = d != x && draw(t, 3) == 0;
        /* Current destinations stay in this driver's books until give-ups end them. */
        is = is || xco_schedule_current(t->schedule, x).destination == d;
        if (is)
            group[count++] = d;
        set_backlogged(t, x, d, is);
        if (is && xco_schedule_current(t->schedule, x).destination != d)
            waits(t, x, d);
    }
    return xco_schedule_backlogged(t->schedule, t->now_ns, x, group, count, t->grants);
}

static int give_up(struct trial *t, uint32_t x) {
    uint32_t d = xco_schedule_current(t->schedule, x).destination;
    if (d != XCO_NONE)
        set_backlogged(t, x, d, false);
    return xco_schedule_gave_up(t->schedule, t->now_ns, x, t->grants);
}

static int leave(struct trial *t, uint32_t x) {
    for (uint32_t d = 0; d < t->options.hosts; d++)
        set_backlogged(t, x, d, false);
    int count = xco_schedule_leave(t->schedule, t->now_ns, x, t->grants);
    t->ends_ns[x] = 0;
    return count;
}

static int any_event(struct trial *t) {
    uint32_t x = (uint32_t)draw(t, t->options.hosts), d = (uint32_t)draw(t, t->options.hosts);
    switch (draw(t, 8)) {
    case 0:
        return report(t, x);
    case 1:
        return leave(t, x);
    case 2:
    case 3:
        return give_up(t, x);
    case 4:
        if (x == d)
            return 0;
        return xco_schedule_weigh(t->schedule, x, d, 0.25 + (double)draw(t, 16));
    default:
        if (x == d)
            return 0;
        if (xco_schedule_current(t->schedule, x).destination != d)
            waits(t, x, d);
        set_backlogged(t, x, d, true);
        return xco_schedule_add(t->schedule, t->now_ns, x, d, t->grants);
    }
}

/* The next slice that ends before a given time, or XCO_NONE. */
static uint32_t next_end(const struct trial *t, uint64_t until_ns) {
    uint32_t next = XCO_NONE;
    for (uint32_t x = 0; x < t->options.hosts; x++)
        if (t->ends_ns[x] && t->ends_ns[x] <= until_ns &&
            (next == XCO_NONE || t->ends_ns[x] < t->ends_ns[next]))
            next = x;
    return next;
}

static const char *one_event(struct trial *t, uint64_t until_ns) {
    struct xco_grant before[MOST_NODES];
    for (uint32_t x = 0; x < t->options.hosts; x++)
        before[x] = xco_schedule_current(t->schedule, x);
    uint32_t ended = next_end(t, until_ns);
    int count;
    if (ended != XCO_NONE) {
        t->now_ns = t->ends_ns[ended];
        count = xco_schedule_expired(t->schedule, t->now_ns, ended, t->grants);
    } else {
        t->now_ns = until_ns;
        count = any_event(t);
    }
    const char *wrong = follow(t, count, before);
    wrong = wrong ? wrong : overdue(t);
    return wrong ? wrong : xco_schedule_check(t->schedule);
}

static const char *run(struct trial *t) {
    const char *wrong = NULL;
    draw_topology(t);
    t->schedule = xco_schedule_new(&t->options, &wrong);
    if (!t->schedule)
        return wrong;
    t->now_ns = 1;
    for (int i = 0; i < EVENTS && !wrong; i++) {
        uint64_t until_ns = t->now_ns + draw(t, SLICE_NS);
        while (!wrong && next_end(t, until_ns) != XCO_NONE)
            wrong = one_event(t, until_ns);
        wrong = wrong ? wrong : one_event(t, until_ns);
    }
    xco_schedule_free(t->schedule);
    return wrong;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 5.0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    struct timespec start, now;
    timespec_get(&start, TIME_UTC);
    for (uint64_t trials = 0;; trials++) {
        struct trial *trial = calloc(1, sizeof *trial);
        if (!trial)
            return 2;
        trial->random = (seed + trials) * 0x9e3779b97f4a7c15u | 1;
        const char *wrong = run(trial);
        if (wrong)
            printf("seed %" PRIu64 " at %" PRIu64 " ns: %s\n", seed + trials, trial->now_ns, wrong);
        free(trial);
        timespec_get(&now, TIME_UTC);
        if (wrong)
            return 1;
        if (difftime(now.tv_sec, start.tv_sec) + 1e-9 * (double)(now.tv_nsec - start.tv_nsec) >=
            seconds)
            return printf("%" PRIu64 " trials\n", trials + 1) < 0;
    }
}
