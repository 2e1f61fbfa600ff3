// Whether new connections to a host are refused, because links on the way to it are congested. Pure.
#include "coordinator/engine/admission.h"

#include <math.h>

#define SHARE_S 0.01 // time constant of the share
#define MEAN_S 0.1 // of the mean: rates that follow marks rise and fall within less

// Forgets what was known before a silence, or a restart of the other host.
static void begin(struct xco_admission *admission, int64_t now_ns,
                  const struct xco_admission_heard *heard) {
    admission->heard = *heard;
    admission->share = admission->mean = 0.0;
    admission->arrived_ns = now_ns;
    admission->above_ns = admission->below_ns = 0;
}

static void smooth(double *value, double found, double seconds, double constant_s) {
    *value += (1.0 - exp(-seconds / constant_s)) * (found - *value);
}

// Takes a period in which packets arrived. Without any, the share stays.
static void observe(struct xco_admission *admission, int64_t now_ns,
                    const struct xco_admission_heard *heard) {
    const struct xco_admission_heard *before = &admission->heard;
    const double packets = (double)(heard->packets - before->packets);
    const double marks = (double)(heard->marks - before->marks);
    if (packets > 0) {
        const double seconds = (double)(heard->at_ns - before->at_ns) / 1e9;
        const double found = fmin(1.0, marks / packets);
        smooth(&admission->share, found, seconds, SHARE_S);
        smooth(&admission->mean, found, seconds, MEAN_S);
        admission->arrived_ns = now_ns;
    }
    admission->heard = *heard;
}

static void take(struct xco_admission *admission, int64_t now_ns,
                 const struct xco_admission_heard *heard) {
    const struct xco_admission_heard *before = &admission->heard;
    const bool restarted = heard->packets < before->packets || heard->marks < before->marks;
    if (before->at_ns == 0 || restarted) {
        begin(admission, now_ns, heard);
    } else if (heard->at_ns > before->at_ns) {
        observe(admission, now_ns, heard);
    }
}

// Notes since when a condition holds; 0: it does not.
static void note(int64_t *since_ns, bool holds, int64_t now_ns) {
    *since_ns = !holds ? 0 : *since_ns == 0 ? now_ns : *since_ns;
}

static bool lasts(int64_t since_ns, int64_t now_ns) {
    return since_ns != 0 && now_ns - since_ns >= XCO_ADMISSION_HOLD_NS;
}

static void end(struct xco_admission *admission, int64_t now_ns) {
    if (admission->began_ns != 0) {
        admission->began_ns = 0;
        admission->rests_ns = now_ns + XCO_ADMISSION_REST_NS;
    }
}

static void judge(struct xco_admission *admission, double limit, int64_t now_ns) {
    const bool idle = now_ns - admission->arrived_ns >= XCO_ADMISSION_HOLD_NS;
    note(&admission->above_ns, !idle && admission->share >= limit, now_ns);
    note(&admission->below_ns, admission->mean < limit / 2, now_ns);
    if (admission->began_ns != 0) {
        const bool long_enough = now_ns - admission->began_ns >= XCO_ADMISSION_MOST_NS;
        if (idle || long_enough || lasts(admission->below_ns, now_ns)) {
            end(admission, now_ns);
        }
    } else if (lasts(admission->above_ns, admission->arrived_ns) && now_ns >= admission->rests_ns) {
        admission->began_ns = now_ns;
    }
}

bool xco_admission_follow(struct xco_admission *admission, const struct xco_admission_terms *terms,
                          int64_t now_ns, const struct xco_admission_heard *heard) {
    if (heard->at_ns == 0 || now_ns - heard->at_ns >= terms->silence_ns) {
        end(admission, now_ns);
        begin(admission, now_ns, &(struct xco_admission_heard){0});
        return false;
    }
    take(admission, now_ns, heard);
    judge(admission, terms->limit, now_ns);
    return admission->began_ns != 0;
}
