// Times requests to the kernel's traffic control on an interface: DEVICE SECONDS.
//
// Four ways, one of each in turn, every half millisecond: a gate's TBF closed and opened, the rate of
// an HTB class changed, and a BPF map written. Prints one line per request: way and nanoseconds.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <sys/syscall.h>

#include "qdisc/gate.h"
#include "qdisc/tree.h"

#define LINE_BPS 1000000000u
#define SLICE_NS 2000000
#define PAUSE_NS 500000

enum way { TBF_CLOSE, TBF_OPEN, HTB_CHANGE, MAP_WRITE, WAYS };

static const char *const NAMES[WAYS] = {"tbf_close", "tbf_open", "htb_change", "map_write"};

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int make_map(void) {
    union bpf_attr terms = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    return (int)syscall(SYS_bpf, BPF_MAP_CREATE, &terms, sizeof terms);
}

static int write_map(int map, uint32_t value) {
    uint32_t key = 0;
    union bpf_attr entry = {.map_fd = (uint32_t)map};
    entry.key = (uint64_t)(uintptr_t)&key;
    entry.value = (uint64_t)(uintptr_t)&value;
    return (int)syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &entry, sizeof entry);
}

// Makes the tree with one gate; 0 or a negative errno.
static int make_gate(struct xco_gate *gate, const char *device) {
    const struct xco_tree tree = {.small_bytes = 128,
                                  .small_bps = LINE_BPS / 20,
                                  .newcomer_bps = LINE_BPS / 20,
                                  .newcomer_bytes = 262144,
                                  .queue_bytes = 4000000,
                                  .burst_ns = 20000};
    static struct xco_batch batch;
    int error = xco_gate_open(gate, device, &tree);
    error = error == 0 ? xco_gate_make(gate) : error;
    xco_batch_clear(&batch);
    xco_tree_add_gate(&batch, &gate->tree, 0);
    return error == 0 ? xco_gate_send(gate, &batch, NULL) : error;
}

// Carries a request out and returns how long it took, ns; negative: it failed.
static int64_t time_one(struct xco_gate *gate, int map, enum way way, uint32_t round) {
    static struct xco_batch batch;
    xco_batch_clear(&batch);
    if (way == HTB_CHANGE) {
        xco_tree_set_newcomers(&batch, &gate->tree, LINE_BPS / (20 + round % 2));
    } else {
        const struct xco_opening opening = {way == TBF_OPEN ? LINE_BPS : 0, SLICE_NS, false, false};
        xco_tree_set_gate(&batch, &gate->tree, 0, &opening);
    }
    int64_t begin = now_ns();
    int error = way == MAP_WRITE ? write_map(map, round) : xco_gate_send(gate, &batch, NULL);
    return error == 0 ? now_ns() - begin : -1;
}

int main(int count, char **words) {
    static struct xco_gate gate;
    int map = make_map();
    if (count != 3 || map < 0 || make_gate(&gate, words[1]) != 0) {
        return EXIT_FAILURE;
    }
    int64_t end = now_ns() + (int64_t)(atof(words[2]) * 1e9);
    for (uint32_t round = 0; now_ns() < end; round++) {
        enum way way = round % WAYS;
        int64_t took = time_one(&gate, map, way, round / WAYS);
        if (took < 0) {
            return EXIT_FAILURE;
        }
        printf("%s %lld\n", NAMES[way], (long long)took);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return xco_gate_remove(&gate) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
