// The controller's clock as a host reads it: the offset from the exchange with the shortest way.
//
// Each directive contains the send and arrival times of the host's last report, and its own send
// time. The error is at most half of the exchange's duration without the controller's part. So
// the sample of the shortest recent exchange is the best one (RFC 5905, section 10).
#ifndef XCO_COORDINATOR_ENGINE_CLOCK_OFFSET_H
#define XCO_COORDINATOR_ENGINE_CLOCK_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

#define XCO_CLOCK_SAMPLES 16
#define XCO_CLOCK_AGE_NS 10000000000 // quartz clocks drift apart by at most 1 ms in this time

struct xco_clock_sample {
    int64_t offset_ns; // controller minus host
    int64_t way_ns;    // round trip
    int64_t taken_ns;  // host's clock
};

struct xco_clock {
    struct xco_clock_sample samples[XCO_CLOCK_SAMPLES];
    unsigned count;
    unsigned next;
};

// The four timestamps of an exchange; the outer two are of the host's clock, the inner ones of the
// controller's.
struct xco_exchange {
    int64_t sent_ns;
    int64_t received_ns;
    int64_t answered_ns;
    int64_t heard_ns;
};

// Takes a sample; ignores one with a way that is negative or longer than a second.
bool xco_clock_learn(struct xco_clock *clock, const struct xco_exchange *exchange);

// Returns the best sample that is not too old, or NULL.
const struct xco_clock_sample *xco_clock_best(const struct xco_clock *clock, int64_t now_ns);

// Forgets everything: another controller has another clock.
void xco_clock_forget(struct xco_clock *clock);

#endif
