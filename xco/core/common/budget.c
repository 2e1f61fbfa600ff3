// What coordinated senders may share of a port: by its bytes and its marks. Pure.
#include "common/budget.h"

#include <math.h>
#include <stdbool.h>

// The settings of xco/laws/budget.py.
#define STANDING 0.6     // marked share of a period's packets from which on the queue stands
#define PERSISTENCE 3u   // periods in a row after which a standing queue is believed
#define DEAD_ZONE 0.02   // share of the capacity that may be an error of the counters
#define SMOOTHING_S 0.02 // time constant of foreign traffic
#define RECOVERY_S 1.0   // time constant with which a reduced capacity rises again
#define LEAST 0.05       // share that coordinated senders keep, whatever a port reports

struct xco_budget xco_budget_begin(double nominal_bps) {
    return (struct xco_budget){.capacity_bps = nominal_bps, .calm_s = INFINITY};
}

void xco_budget_observe(struct xco_budget *budget, const struct xco_budget_period *seen,
                        double nominal_bps) {
    const bool congested =
        seen->packets > 0 && (seen->marks >= STANDING * seen->packets || seen->drops > 0);
    const double found_bps = seen->bits / seen->seconds;
    const double foreign_bps = fmax(0.0, found_bps - seen->coordinated_bits / seen->seconds);
    const double weight = 1.0 - exp(-seen->seconds / SMOOTHING_S);
    const double smoothed = budget->foreign_bps + weight * (foreign_bps - budget->foreign_bps);
    budget->stood = congested ? budget->stood + 1 : 0;
    if (budget->stood >= PERSISTENCE) {
        budget->capacity_bps = fmin(nominal_bps, found_bps);
        budget->foreign_bps = fmax(smoothed, foreign_bps);
        budget->calm_s = 0.0;
        return;
    }
    const double rise = 1.0 - exp(-seen->seconds / RECOVERY_S);
    budget->capacity_bps += rise * (nominal_bps - budget->capacity_bps);
    budget->foreign_bps = smoothed;
    budget->calm_s += seen->seconds;
}

double xco_budget_shared(const struct xco_budget *budget, double nominal_bps, double aim) {
    const bool believed =
        budget->calm_s < RECOVERY_S || budget->foreign_bps >= DEAD_ZONE * nominal_bps;
    const double foreign_bps = believed ? budget->foreign_bps : 0.0;
    return fmax(LEAST * nominal_bps, aim * budget->capacity_bps - foreign_bps);
}
