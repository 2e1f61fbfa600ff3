/* A switch between veth interfaces, for tests.
 *
 * Usage: zovn-veth-switch [-l LIMIT_BYTES] [-r] INTERFACE... Runs until SIGTERM; then prints counters as lines of
 * `interface.counter value`; `dropped` is without what waited at the end. -l: lossy, with this limit for each destination. -r: no switch;
 * undoes what a killed one left. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "forward/loop.h"
#include "switch/switch.h"
#include "veth/veth_port.h"

enum { REST_NS = 50000 };
static const char *const STATES[] = {"silent", "first", "runs", "gone"};

struct place {
    const char *interface;
    struct zovn_port *port; /* NULL: gone */
    uint32_t number;
    struct zovn_counters counters;
    uint64_t lost;
    enum zovn_veth_state state;
};

/* The switch's time, and when the clock was last read for it. */
struct watch {
    uint64_t now_ns, read_ns;
};

static volatile sig_atomic_t ends;

static void end(int signal) {
    (void)signal;
    ends = 1;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct zovn_switch *begin(uint64_t limit_bytes) {
    struct zovn_settings settings;
    const char *problem;
    zovn_settings_default(&settings);
    for (uint32_t i = 0; i < ZOVN_CLASSES; i++)
        settings.classes[i].limit_bytes = limit_bytes;
    settings.seed = now_ns();
    return zovn_switch_new(&settings, &problem);
}

static bool add(struct zovn_switch *vswitch, struct place *place, const char *interface) {
    struct zovn_port_settings access = {.vlan = 1};
    char problem[ZOVN_VETH_PROBLEM];
    const char *refusal;
    place->interface = interface;
    place->port = zovn_veth_port_new(interface, problem);
    if (!place->port) {
        fprintf(stderr, "zovn-veth-switch: %s\n", problem);
        return false;
    }
    place->number = (uint32_t)zovn_switch_add(vswitch, place->port, &access, &refusal);
    return true;
}

static void remove_port(struct zovn_switch *vswitch, struct place *place) {
    if (!place->port)
        return;
    place->lost = zovn_veth_port_lost(place->port);
    place->state = zovn_veth_port_state(place->port);
    zovn_switch_remove(vswitch, place->number, &place->counters);
    place->port = NULL;
}

/* As in the program, time in which this process did not run does not count. */
static uint64_t counted_ns(struct watch *watch) {
    uint64_t read_ns = now_ns(), elapsed_ns = read_ns - watch->read_ns;
    watch->read_ns = read_ns;
    watch->now_ns += elapsed_ns < ZOVN_MOST_ELAPSED_NS ? elapsed_ns : ZOVN_MOST_ELAPSED_NS;
    return watch->now_ns;
}

static void run(struct zovn_switch *vswitch, struct place *places, int count) {
    struct timespec rest = {.tv_nsec = REST_NS};
    struct watch watch = {.read_ns = now_ns()};
    watch.now_ns = watch.read_ns;
    while (!ends) {
        if (!zovn_switch_step(vswitch, counted_ns(&watch)))
            nanosleep(&rest, NULL);
        for (int i = 0; i < count; i++)
            if (places[i].port && places[i].port->fault)
                remove_port(vswitch, &places[i]);
    }
}

static void print(const struct place *place) {
    const struct zovn_counters *counters = &place->counters;
    const char *name = place->interface;
    uint64_t dropped = 0;
    for (uint32_t i = 0; i < ZOVN_REMOVED; i++)
        dropped += counters->drops[i];
    printf("%s.in %" PRIu64 "\n%s.out %" PRIu64 "\n", name, counters->in, name, counters->out);
    printf("%s.dropped %" PRIu64 "\n%s.congestion %" PRIu64 "\n", name, dropped, name,
           counters->drops[ZOVN_CONGESTION]);
    printf("%s.stalls %" PRIu64 "\n%s.blocked_ns %" PRIu64 "\n", name, counters->stalls, name,
           counters->blocked_ns);
    printf("%s.lost %" PRIu64 "\n%s.state %s\n", name, place->lost, name, STATES[place->state]);
}

static int release(char *const *interfaces) {
    char problem[ZOVN_VETH_PROBLEM];
    int status = 0;
    for (; *interfaces; interfaces++)
        if (!zovn_veth_release(*interfaces, problem)) {
            fprintf(stderr, "zovn-veth-switch: %s\n", problem);
            status = 1;
        }
    return status;
}

static int serve(uint64_t limit_bytes, int count, char *const *interfaces) {
    struct place places[ZOVN_MOST_PORTS] = {0};
    struct zovn_switch *vswitch = begin(limit_bytes);
    bool whole = vswitch && count <= ZOVN_MOST_PORTS;
    for (int i = 0; whole && i < count; i++)
        whole = add(vswitch, &places[i], interfaces[i]);
    if (whole) {
        puts("ready");
        fflush(stdout);
        run(vswitch, places, count);
    }
    for (int i = 0; whole && i < count; i++) {
        remove_port(vswitch, &places[i]);
        print(&places[i]);
    }
    if (vswitch)
        zovn_switch_free(vswitch);
    return !whole;
}

int main(int argc, char **argv) {
    uint64_t limit_bytes = 0;
    bool releases = false;
    for (int option; (option = getopt(argc, argv, "l:r")) != -1;) {
        if (option == '?')
            return 2;
        if (option == 'l')
            limit_bytes = strtoull(optarg, NULL, 10);
        releases |= option == 'r';
    }
    prctl(PR_SET_TIMERSLACK, 1);
    struct sigaction action = {.sa_handler = end};
    sigaction(SIGTERM, &action, NULL);
    return releases ? release(argv + optind) : serve(limit_bytes, argc - optind, argv + optind);
}
