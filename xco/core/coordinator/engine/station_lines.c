// Reads what zovn's switch answers to `stations`.
#include "coordinator/engine/station_lines.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Returns what follows `key=` in a word; NULL: it is another word.
static const char *value_of(const char *word, const char *key) {
    const size_t length = strlen(key);
    return strncmp(word, key, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static bool read_ethernet(const char *text, uint8_t ethernet[6]) {
    int end = 0;
    return sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &ethernet[0], &ethernet[1],
                  &ethernet[2], &ethernet[3], &ethernet[4], &ethernet[5], &end) == 6 &&
           text[end] == '\0' && (ethernet[0] & 1) == 0;
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
        good = ethernet == NULL ? good : read_ethernet(ethernet, line.ethernet);
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
