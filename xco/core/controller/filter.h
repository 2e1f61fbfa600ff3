// A filter in the kernel: drops datagrams that cannot be a host's message.
#ifndef XCO_CONTROLLER_FILTER_H
#define XCO_CONTROLLER_FILTER_H

#include <stdbool.h>

// Attaches the filter to a UDP socket; false with errno. The socket counts its drops (`ss -uam`).
bool xco_filter_attach(int udp);

#endif
