// Reads the MAC address of one station. Pure.
#ifndef XCO_COORDINATOR_ENGINE_ETHERNET_H
#define XCO_COORDINATOR_ENGINE_ETHERNET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// Reads a text such as 52:54:00:00:00:02; false: it is none, or that of a group.
static inline bool xco_ethernet_read(const char *text, uint8_t ethernet[6]) {
    int end = 0;
    return sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &ethernet[0], &ethernet[1],
                  &ethernet[2], &ethernet[3], &ethernet[4], &ethernet[5], &end) == 6 &&
           text[end] == '\0' && (ethernet[0] & 1) == 0;
}

#endif
