// A filter in the kernel: what cannot be a message of a host never reaches the controller.
#ifndef XCO_CONTROLLER_FILTER_H
#define XCO_CONTROLLER_FILTER_H

#include <stdbool.h>

// Attaches the filter to a UDP socket; false with errno. What it drops, the socket counts (`ss -uam`).
bool xco_filter_attach(int udp);

#endif
