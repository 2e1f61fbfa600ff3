// A rate that follows the share of marked packets, for links whose capacity no end knows. Pure.
#include "coordinator/engine/by_marks.h"

#include <math.h>

// The settings of xco/laws/by_marks.py.
#define GAIN (1.0 / 16) // weight of a period in the smoothed share (RFC 8257, g)
#define STEP 3e-3       // rise of a calm period, as a share of the link
#define RECOVERY 5u     // calm periods that only return to the rate before the fall
#define CALM 50u        // calm periods after which each rise is larger than the one before
#define STEPS 20u       // up to so many steps

struct xco_marked xco_marked_begin(double link_bps) {
    return (struct xco_marked){.rate_bps = link_bps, .target_bps = link_bps, .alpha = 1.0};
}

static void fall(struct xco_marked *pair) {
    if (pair->calm > 0) {
        pair->target_bps = pair->rate_bps;
    }
    pair->rate_bps *= 1.0 - pair->alpha / 2;
    pair->calm = 0;
}

static double steps_of(uint32_t calm) {
    if (calm < RECOVERY) {
        return 0;
    }
    return calm <= CALM + 1 ? 1 : calm - CALM < STEPS ? calm - CALM : STEPS;
}

static void rise(struct xco_marked *pair, double link_bps) {
    const double target_bps = pair->target_bps + steps_of(pair->calm) * STEP * link_bps;
    pair->target_bps = fmin(link_bps, target_bps);
    pair->rate_bps = (pair->rate_bps + pair->target_bps) / 2;
    pair->calm += pair->calm < UINT32_MAX;
}

void xco_marked_follow(struct xco_marked *pair, double packets, double marks, double link_bps) {
    if (packets <= 0) {
        return;
    }
    pair->alpha += GAIN * (fmin(1.0, marks / packets) - pair->alpha);
    if (marks > 0) {
        fall(pair);
    } else {
        rise(pair, link_bps);
    }
}
