// Reads the file of locations, which xco/coordinator/locations.py writes. Pure.
#ifndef XCO_COORDINATOR_ENGINE_LOCATION_LINE_H
#define XCO_COORDINATOR_ENGINE_LOCATION_LINE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

// Reads a line, which is cut into words; false: it names no station. The host's address is mapped
// into IPv6.
bool xco_location_line_read(char *line, uint8_t ethernet[6], struct in6_addr *host);

#endif
