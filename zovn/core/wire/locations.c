/* Reads the map of stations, and finds one in it. */
#include "wire/locations.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILE = 8 << 20, MOST_WORDS = 3 };

static uint32_t place_of(const uint8_t *ethernet) {
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < 6; i++)
        hash = (hash ^ ethernet[i]) * 16777619u;
    return (hash ^ hash >> 15) % (2 * ZOVN_MOST_STATIONS);
}

/* Its place, or that of a free one; there are twice as many as stations. */
static struct zovn_station *look(struct zovn_locations *locations, const uint8_t *ethernet) {
    uint32_t at = place_of(ethernet);
    while (locations->stations[at].used &&
           memcmp(locations->stations[at].ethernet, ethernet, 6) != 0)
        at = (at + 1) % (2 * ZOVN_MOST_STATIONS);
    return &locations->stations[at];
}

int32_t zovn_locations_find(const struct zovn_locations *locations, const uint8_t *ethernet) {
    const struct zovn_station *found = look((struct zovn_locations *)locations, ethernet);
    return found->used ? found->host : -1;
}

/* Return its number, or -1 if there are too many or it is no address. */
static int32_t host(struct zovn_locations *locations, const char *text) {
    uint8_t address[4];
    if (inet_pton(AF_INET, text, address) != 1)
        return -1;
    for (uint32_t i = 0; i < locations->host_count; i++)
        if (memcmp(locations->hosts[i], address, 4) == 0)
            return (int32_t)i;
    if (locations->host_count == ZOVN_MOST_HOSTS)
        return -1;
    memcpy(locations->hosts[locations->host_count], address, 4);
    return (int32_t)locations->host_count++;
}

static bool ethernet_of(const char *text, uint8_t ethernet[6]) {
    unsigned parts[6];
    int end = 0;
    if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &parts[0], &parts[1], &parts[2], &parts[3],
               &parts[4], &parts[5], &end) != 6 ||
        text[end] || end != 17)
        return false;
    for (uint32_t i = 0; i < 6; i++)
        ethernet[i] = (uint8_t)parts[i];
    return !(ethernet[0] & 1);
}

static const char *add_station(struct zovn_locations *locations, const char *station,
                               const char *address) {
    uint8_t ethernet[6];
    if (!station || !ethernet_of(station, ethernet))
        return "write an Ethernet address of one station, such as 02:00:00:00:00:01";
    int32_t at = address ? host(locations, address) : -1;
    if (at < 0)
        return "write the IPv4 address of one of at most 64 hosts";
    struct zovn_station *place = look(locations, ethernet);
    if (!place->used && locations->station_count == ZOVN_MOST_STATIONS)
        return "there are 65536 stations already";
    locations->station_count += !place->used;
    place->used = true;
    place->host = (uint8_t)at;
    memcpy(place->ethernet, ethernet, 6);
    return NULL;
}

static const char *add_line(struct zovn_locations *locations, char *line) {
    char *words[MOST_WORDS + 1] = {NULL}, *rest = line;
    for (uint32_t i = 0; i <= MOST_WORDS; i++) {
        words[i] = strtok_r(rest, " \t\r", &rest);
        if (!words[i])
            break;
    }
    if (!words[0])
        return NULL;
    if (strcmp(words[0], "host") == 0 && words[1] && !words[2])
        return host(locations, words[1]) < 0 ? "write the IPv4 address of one of at most 64 hosts"
                                             : NULL;
    if (strcmp(words[0], "station") == 0 && !words[3])
        return add_station(locations, words[1], words[2]);
    return "write `host ADDRESS` or `station ETHERNET ADDRESS`";
}

struct zovn_locations *zovn_locations_read(char *text, char *problem) {
    struct zovn_locations *locations = calloc(1, sizeof *locations);
    const char *wrong = locations ? NULL : "no memory for it";
    uint32_t number = 1;
    for (char *line; !wrong && (line = strsep(&text, "\n")); number += !wrong)
        wrong = add_line(locations, line);
    if (!wrong)
        return locations;
    snprintf(problem, ZOVN_LOCATIONS_PROBLEM, "line %u: %s", number, wrong);
    zovn_locations_free(locations);
    return NULL;
}

static struct zovn_locations *read_from(FILE *file, char *problem) {
    char *text = calloc(1, MOST_FILE + 1);
    struct zovn_locations *locations = NULL;
    size_t length = text ? fread(text, 1, MOST_FILE, file) : 0;
    if (!text || ferror(file) || (length == MOST_FILE && fgetc(file) != EOF))
        snprintf(problem, ZOVN_LOCATIONS_PROBLEM, "cannot be read, or is longer than 8 MiB");
    else
        locations = zovn_locations_read(text, problem);
    free(text);
    return locations;
}

struct zovn_locations *zovn_locations_load(const char *path, char *problem) {
    FILE *file = fopen(path, "re");
    if (!file) {
        snprintf(problem, ZOVN_LOCATIONS_PROBLEM, "%s", strerror(errno));
        return NULL;
    }
    struct zovn_locations *locations = read_from(file, problem);
    fclose(file);
    return locations;
}

void zovn_locations_free(struct zovn_locations *locations) {
    free(locations);
}
