// The congestion window.
#include <math.h>

#include "window.h"

#define CUBIC_SCALE 0.4
#define CUBIC_BETA 0.8
#define VEGAS_LEAST 1.0
#define VEGAS_MOST 3.0

uint32_t window_segments(const struct endpoint *endpoint) {
    return endpoint->window < 1 ? 1 : (uint32_t)endpoint->window;
}

static void set(const struct tcp *tcp, struct endpoint *e, double window) {
    double most = (double)tcp->config->window;
    e->window = window < most ? window : most;
}

static double seconds(int64_t ps) {
    return (double)ps / (double)PS_PER_SECOND;
}

// The window of Cubic a round trip from now, or that of NewReno with its beta if this is larger.
static double cubic_target(const struct tcp *tcp, const struct endpoint *e) {
    double since = seconds(tcp_now(tcp) - e->epoch_ps), rtt = seconds(e->srtt_ps);
    double distance = since + rtt - cbrt(e->most * (1 - CUBIC_BETA) / CUBIC_SCALE);
    double cubic = CUBIC_SCALE * distance * distance * distance + e->most;
    double slope = 3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA);
    double friendly = e->most * CUBIC_BETA + slope * since / rtt;
    return friendly > cubic ? friendly : cubic;
}

static void avoid_cubic(const struct tcp *tcp, struct endpoint *e, uint32_t acknowledged) {
    double target = cubic_target(tcp, e);
    if (target > e->window)
        set(tcp, e, e->window + fmin(target - e->window, e->window) / e->window * acknowledged);
}

// Segments of this flow that wait in queues, by the least round trip of the last round.
static double vegas_queued(const struct endpoint *e) {
    return e->window * (1 - (double)e->base_ps / (double)e->round_ps);
}

static void vegas(const struct tcp *tcp, struct endpoint *e, uint32_t acknowledged) {
    bool slow_start = e->window < e->threshold;
    if (slow_start)
        set(tcp, e, e->window + acknowledged / 2.0);
    if ((int32_t)(e->una - e->round_last) < 0)
        return;
    double queued = vegas_queued(e);
    if (slow_start && queued > VEGAS_LEAST)
        e->threshold = fmax(2, e->window);
    else if (!slow_start && queued < VEGAS_LEAST)
        set(tcp, e, e->window + 1);
    else if (!slow_start && queued > VEGAS_MOST)
        e->window = fmax(2, e->window - 1);
    e->round_last = e->next;
    e->round_ps = INT64_MAX;
}

void window_grow(const struct tcp *tcp, struct endpoint *e, uint32_t acknowledged) {
    if (tcp->config->tcp == TCP_VEGAS)
        vegas(tcp, e, acknowledged);
    else if (e->window < e->threshold)
        set(tcp, e, e->window + (acknowledged < 2 ? acknowledged : 2));
    else if (tcp->config->tcp == TCP_CUBIC && e->epoch_ps)
        avoid_cubic(tcp, e, acknowledged);
    else
        set(tcp, e, e->window + acknowledged / e->window);
}

static void remember_loss(const struct tcp *tcp, struct endpoint *e) {
    double beta = tcp->config->tcp == TCP_CUBIC ? CUBIC_BETA : 0.5;
    e->most = e->window;
    e->epoch_ps = tcp_now(tcp);
    e->threshold = fmax(2, floor(e->window * beta));
}

void window_reduce(const struct tcp *tcp, struct endpoint *e) {
    remember_loss(tcp, e);
    e->window = e->threshold;
}

void window_collapse(const struct tcp *tcp, struct endpoint *e) {
    if (e->backoff == 0)
        remember_loss(tcp, e);
    e->window = 1;
}

void window_restart(const struct tcp *tcp, struct endpoint *e) {
    e->window = fmin(e->window, (double)tcp->config->initial_window);
}
