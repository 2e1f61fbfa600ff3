// The controller's clock as a host reads it: the offset of the exchange with the shortest way.
//
// Each directive tells when the host's last report was sent and received, and bears its own stamp.
// Half of what the exchange took, less the controller's part of it, is the error's bound; so the
// sample of the shortest exchange of late is the best there is (RFC 5905, section 10).
#ifndef XCO_COORDINATOR_ENGINE_CLOCK_OFFSET_H
#define XCO_COORDINATOR_ENGINE_CLOCK_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

#define XCO_CLOCK_SAMPLES 16
#define XCO_CLOCK_AGE_NS 10000000000 // clocks of quartz drift apart by 1 ms in this time at most

struct xco_clock_sample {
    int64_t offset_ns; // controller less host
    int64_t way_ns;    // there and back
    int64_t taken_ns;  // host's clock
};

struct xco_clock {
    struct xco_clock_sample samples[XCO_CLOCK_SAMPLES];
    unsigned count;
    unsigned next;
};

// The four stamps of an exchange; the outer two are of the host's clock, the inner ones of the
// controller's.
struct xco_exchange {
    int64_t sent_ns;
    int64_t received_ns;
    int64_t answered_ns;
    int64_t heard_ns;
};

// Takes a sample; one whose way is negative or longer than a second is not believed.
bool xco_clock_learn(struct xco_clock *clock, const struct xco_exchange *exchange);

// The best sample that is not too old, or NULL if there is none.
const struct xco_clock_sample *xco_clock_best(const struct xco_clock *clock, int64_t now_ns);

// Forgets everything: another controller has another clock.
void xco_clock_forget(struct xco_clock *clock);

#endif
