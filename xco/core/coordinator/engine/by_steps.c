// A rate that falls by a step for each mark, and rises by one in each calm period. Pure.
#include "coordinator/engine/by_steps.h"

#include <math.h>

#include "common/steps.h"

double xco_steps_follow(double rate_bps, double marks, double line_bps) {
    const double unit_bps = xco_step_bps(line_bps);
    const double fall = marks > 0 ? marks * unit_bps : -unit_bps;
    return fmax(0.0, fmin(line_bps, rate_bps - fall));
}

double xco_steps_allowed(double rate_bps, double line_bps) {
    return fmax(rate_bps, XCO_STEP_LEAST * line_bps);
}
