// Reads what zovn's switch answers to `stations`.
#include "coordinator/engine/station_lines.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/engine/ethernet.h"

// Returns what follows `key=` in a word; NULL: it is another word.
static const char *value_of(const char *word, const char *key) {
    const size_t length = strlen(key);
    return strncmp(word, key, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static struct xco_station_line read_page(char *rest) {
    struct xco_station_line line = {.kind = XCO_LINE_PAGE};
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        const char *next = value_of(word, "next");
        line.next = next == NULL ? line.next : (uint32_t)strtoul(next, NULL, 10);
    }
    return line;
}

static struct xco_station_line read_station(char *rest) {
    struct xco_station_line line = {.kind = XCO_LINE_OTHER};
    bool wire = false, good = false;
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        const char *ethernet = value_of(word, "ethernet"), *kind = value_of(word, "kind");
        good = ethernet == NULL ? good : xco_ethernet_read(ethernet, line.ethernet);
        wire = wire || (kind != NULL && strcmp(kind, "wire") == 0);
    }
    line.kind = good && !wire ? XCO_LINE_STATION : XCO_LINE_OTHER;
    return line;
}

struct xco_station_line xco_station_line_read(char *line) {
    char *rest = line;
    const char *first = strtok_r(rest, " ", &rest);
    if (first == NULL) {
        return (struct xco_station_line){.kind = XCO_LINE_OTHER};
    }
    if (strcmp(first, "stations") == 0) {
        return read_page(rest);
    }
    if (strcmp(first, "station") == 0) {
        return read_station(rest);
    }
    return (struct xco_station_line){.kind = strcmp(first, "ok") == 0      ? XCO_LINE_END
                                             : strcmp(first, "error") == 0 ? XCO_LINE_REFUSED
                                                                           : XCO_LINE_OTHER};
}
