/* Service of flows, by weight, as logarithms: recent service counts more at no cost. */
#include <math.h>
#include <string.h>

#include "scheduler/internal.h"

/* log2(1 + 2^-x) in steps of 1/STEPS; beyond the last, the addition is below a double's
 * precision. */
enum { STEPS = 64, MOST = 54 };

void shares_init(struct shares *shares, double memory_ns) {
    shares->per_ns = 1.0 / memory_ns;
    for (uint32_t i = 0; i < SHARE_STEPS; i++)
        shares->sum[i] = log2(1.0 + exp2(-(double)i / STEPS));
}

/* Earlier logarithms are looked up: slices are alike, and so are rates. */
static double log2_of(struct shares *shares, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    struct logarithm *known = &shares->known[bits * 0x9e3779b97f4a7c15u >> 56];
    if (known->bits != bits)
        *known = (struct logarithm){bits, log2(value)};
    return known->log2;
}

/* log2(2^a + 2^b), interpolated: within 2^-16 of the smaller one's contribution. */
static double log2_sum(const struct shares *shares, double a, double b) {
    double high = a > b ? a : b, apart = (high - (a > b ? b : a)) * STEPS;
    if (!(apart < MOST * STEPS))
        return high;
    uint32_t at = (uint32_t)apart;
    double part = apart - at;
    return high + shares->sum[at] + part * (shares->sum[at + 1] - shares->sum[at]);
}

double share_more(struct shares *shares, double share, double served, uint64_t now_ns) {
    return log2_sum(shares, share, log2_of(shares, served) + (double)now_ns * shares->per_ns);
}
