// The congestion window: slow start, NewReno, Cubic and Vegas, as in FreeBSD 9.
#ifndef WINDOW_H
#define WINDOW_H

#include "tcp.h"

// Segments that may be in flight, at least one.
uint32_t window_segments(const struct endpoint *endpoint);

// So many segments have been acknowledged outside of recovery.
void window_grow(const struct tcp *tcp, struct endpoint *endpoint, uint32_t acknowledged);

// Fast retransmit reduces the window, a timeout collapses it, idleness restarts it.
void window_reduce(const struct tcp *tcp, struct endpoint *endpoint);
void window_collapse(const struct tcp *tcp, struct endpoint *endpoint);
void window_restart(const struct tcp *tcp, struct endpoint *endpoint);

#endif
