/* At which host a station is: a map from a file, so that no frame is flooded to find out.
 *
 * Lines of the file: `host ADDRESS`, and `station ETHERNET ADDRESS`; a host needs no line of its own
 * if a station names it. Floods, such as of ARP, go to all hosts. The last line of a station
 * holds. Pure, but for `zovn_locations_load`. */
#ifndef ZOVN_WIRE_LOCATIONS_H
#define ZOVN_WIRE_LOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default)

enum {
    ZOVN_MOST_HOSTS = 64,
    ZOVN_MOST_STATIONS = 65536, /* as many as xco distributes */
    ZOVN_LOCATIONS_PROBLEM = 128,
};

struct zovn_station {
    uint8_t ethernet[6];
    uint8_t host;
    bool used;
};

struct zovn_locations {
    uint32_t host_count, station_count;
    uint8_t hosts[ZOVN_MOST_HOSTS][4];
    struct zovn_station stations[2 * ZOVN_MOST_STATIONS]; /* hashed, with linear probing */
};

/* Read the text of such a file, which is cut; return NULL with the problem. */
struct zovn_locations *zovn_locations_read(char *text, char *problem);

/* Read a file; return NULL with the problem. */
struct zovn_locations *zovn_locations_load(const char *path, char *problem);

void zovn_locations_free(struct zovn_locations *locations);

/* Return the number of a station's host, or -1. */
int32_t zovn_locations_find(const struct zovn_locations *locations, const uint8_t *ethernet);

#pragma GCC visibility pop
#endif
