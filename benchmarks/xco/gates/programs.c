// The coordinator's BPF programs, run on single frames by the kernel (BPF_PROG_TEST_RUN).
#include "qdisc/classifier.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_BYTES 2048

static void ignore(void *context, const struct xco_notice *notice) {
    (void)context;
    (void)notice;
}

struct xco_classifier *programs_open(const char *file, int paced, uint32_t hosts,
                                     uint64_t horizon_ns) {
    struct xco_classifier *programs = calloc(1, sizeof *programs);
    const struct xco_classify_terms terms = {.small_bytes = 128,
                                             .large_bytes = 8192,
                                             .crowd_bytes = 6000,
                                             .window_ns = 10000000,
                                             .horizon_ns = horizon_ns,
                                             .paced = (uint32_t)paced,
                                             .hosts = hosts};
    int error =
        programs == NULL ? -ENOMEM : xco_classifier_open(programs, file, &terms, ignore, NULL);
    if (error != 0) {
        free(programs);
        errno = -error;
        return NULL;
    }
    return programs;
}

void programs_close(struct xco_classifier *programs) {
    xco_classifier_close(programs);
    free(programs);
}

// Assigns an IPv4 address, in network order, to a host with this gate.
int programs_place(struct xco_classifier *programs, uint32_t address, uint16_t host,
                   unsigned gate) {
    struct xco_place place = {.kind = XCO_PLACE_IP, .vlan = XCO_ANY_VLAN};
    place.address[10] = place.address[11] = 0xff;
    memcpy(place.address + 12, &address, sizeof address);
    xco_classifier_give(programs, host, gate);
    return xco_classifier_place(programs, &place, host);
}

// Runs a program on a frame repeatedly; returns its action, or a negative errno. `tstamp` is
// the frame's time of departure before and after, `ns` the mean time of a run.
int programs_run(struct xco_classifier *programs, const void *frame, uint32_t bytes, int repeat,
                 uint64_t *tstamp, uint32_t *ns) {
    static _Thread_local uint8_t after[FRAME_BYTES];
    struct __sk_buff in = {.tstamp = *tstamp}, out = {0};
    LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = bytes,
                .data_out = after, .data_size_out = sizeof after, .ctx_in = &in,
                .ctx_size_in = sizeof in, .ctx_out = &out, .ctx_size_out = sizeof out,
                .repeat = repeat);
    int error = bpf_prog_test_run_opts(programs->classify, &options);
    if (error != 0) {
        return error;
    }
    *tstamp = out.tstamp;
    *ns = options.duration;
    return (int)options.retval;
}

// Reads a queue: its next time of departure, rate, bytes with an assigned time, bytes dropped.
void programs_read(const struct xco_classifier *programs, unsigned queue, uint64_t values[4]) {
    const struct xco_pace *pace = &programs->paces[queue];
    values[0] = __atomic_load_n(&pace->next_ns, __ATOMIC_ACQUIRE);
    values[1] = pace->rate_bps;
    values[2] = __atomic_load_n(&pace->sent_bytes, __ATOMIC_ACQUIRE);
    values[3] = __atomic_load_n(&pace->dropped_bytes, __ATOMIC_ACQUIRE);
}

// Returns the bytes that wait in a queue at an instant, as the coordinator reads them.
uint64_t programs_waiting(const struct xco_classifier *programs, unsigned queue, int64_t now_ns) {
    struct xco_passage passage = xco_classifier_passage(programs, queue, now_ns);
    return passage.entered - passage.left;
}
