// Reads the file of locations: lines `station MAC ADDRESS`, among others.
#include "coordinator/engine/location_line.h"

#include <arpa/inet.h>
#include <string.h>

#include "coordinator/engine/ethernet.h"

static bool read_host(const char *text, struct in6_addr *host) {
    struct in_addr four;
    if (inet_pton(AF_INET, text, &four) != 1) {
        return false;
    }
    *host = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(&host->s6_addr[12], &four, sizeof four);
    return true;
}

bool xco_location_line_read(char *line, uint8_t ethernet[6], struct in6_addr *host) {
    char *rest = line;
    const char *word = strtok_r(rest, " \n", &rest);
    const char *station = strtok_r(NULL, " \n", &rest), *at = strtok_r(NULL, " \n", &rest);
    return word != NULL && strcmp(word, "station") == 0 && station != NULL && at != NULL &&
           strtok_r(NULL, " \n", &rest) == NULL && xco_ethernet_read(station, ethernet) &&
           read_host(at, host);
}
