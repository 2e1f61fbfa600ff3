// Reads what zovn's switch answers to `stations` (zovn/core/program/stations.h). Pure.
#ifndef XCO_COORDINATOR_ENGINE_STATION_LINES_H
#define XCO_COORDINATOR_ENGINE_STATION_LINES_H

#include <stdint.h>

enum xco_station_line_kind {
    XCO_LINE_OTHER,   // of no interest: a station behind a wire is at another host
    XCO_LINE_PAGE,    // where to go on
    XCO_LINE_STATION, // an address of this host
    XCO_LINE_END,
    XCO_LINE_REFUSED,
};

struct xco_station_line {
    enum xco_station_line_kind kind;
    uint32_t next;       // place of the next page, 0: there is none
    uint8_t ethernet[6]; // of the station
};

// Reads a line, which is cut into words.
struct xco_station_line xco_station_line_read(char *line);

#endif
