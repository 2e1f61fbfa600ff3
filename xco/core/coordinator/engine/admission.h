// Whether new connections to a host are refused, because links on the way to it are congested. Pure.
//
// docs/decisions/0080-refusing-new-connections.md has the reasons.
#ifndef XCO_COORDINATOR_ENGINE_ADMISSION_H
#define XCO_COORDINATOR_ENGINE_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#define XCO_ADMISSION_HOLD_NS 100000000 // a change must last this long to count
#define XCO_ADMISSION_MOST_NS 5000000000 // the longest refusal
#define XCO_ADMISSION_REST_NS 5000000000 // connections are admitted for this long after each

// What a host said last of what arrived there from this one.
struct xco_admission_heard {
    uint64_t packets; // since its start
    uint64_t marks; // of the packets
    int64_t at_ns; // 0: it has said nothing
};

struct xco_admission_terms {
    double limit; // share of marked packets at which connections are refused, above 0
    int64_t silence_ns; // what was said longer ago counts no more
};

// The state for one destination; zero at the start.
struct xco_admission {
    struct xco_admission_heard heard;
    double share; // of marked packets, smoothed a little against bursts
    double mean; // the same over the ups and downs of rates that follow marks
    int64_t arrived_ns; // when packets last arrived there
    int64_t above_ns; // since when the share has been at the limit or above; 0: it is not
    int64_t below_ns; // since when the mean has been below half of that; 0: it is not
    int64_t began_ns; // the refusal; 0: connections are admitted
    int64_t rests_ns; // none begins before
};

// Takes what a host said; returns whether connections to it are refused.
bool xco_admission_follow(struct xco_admission *admission, const struct xco_admission_terms *terms,
                          int64_t now_ns, const struct xco_admission_heard *heard);

#endif
