/* Fuzzes what reads frames from a wire, and maps of stations: zovn-fuzz-wire [SECONDS [SEED]].
 *
 * Each input lies in memory of its own length, so that the sanitizer sees each byte beyond it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/random.h"
#include "wire/arp.h"
#include "wire/locations.h"
#include "wire/pfc.h"

enum { ROOM = 1600, ROUNDS = 1000, CHANGES = 4, VNI = 42 };

static const struct zovn_endpoint HERE = {{2, 0, 0, 0, 0, 1}, {10, 0, 0, 1}};
static const struct zovn_endpoint THERE = {{2, 0, 0, 0, 0, 2}, {10, 0, 0, 2}};

static struct {
    uint64_t inputs, frames, pauses, answers, maps;
} totals;

static uint32_t tunnel(uint64_t *random, uint8_t *to) {
    const struct zovn_vxlan_path path = {.from = THERE,
                                         .to = HERE,
                                         .vni = VNI,
                                         .class = (uint8_t)zovn_draw(random, 8),
                                         .tagged = zovn_draw(random, 2)};
    uint32_t length = 14 + (uint32_t)zovn_draw(random, 1400);
    uint8_t frame[ROOM] = {0};
    for (uint32_t i = 0; i < length; i++)
        frame[ZOVN_VXLAN_HEADERS + i] = (uint8_t)zovn_draw(random, 256);
    uint8_t *inner = frame + ZOVN_VXLAN_HEADERS;
    static const uint8_t TYPES[][2] = {{0x08, 0}, {0x86, 0xdd}, {0x81, 0}, {0x88, 0xb5}};
    memcpy(inner + 12, TYPES[zovn_draw(random, 4)], 2);
    uint32_t headers = zovn_vxlan_write(inner, length, &path);
    memcpy(to, inner - headers, headers + length);
    return headers + length;
}

static uint32_t pause(uint64_t *random, uint8_t *to) {
    struct zovn_pfc pfc = {.enabled = (uint8_t)zovn_draw(random, 256)};
    pfc.quanta[zovn_draw(random, ZOVN_PFC_CLASSES)] = (uint16_t)zovn_draw(random, 65536);
    zovn_pfc_write(to, THERE.ethernet, &pfc);
    return ZOVN_PFC_BYTES;
}

static uint32_t question(uint64_t *random, uint8_t *to) {
    (void)random;
    zovn_arp_write(to, &THERE, HERE.address);
    return ZOVN_ARP_BYTES;
}

static uint32_t make(uint64_t *random, uint8_t *to) {
    uint32_t (*const MAKE[])(uint64_t *, uint8_t *) = {tunnel, pause, question};
    uint32_t length = MAKE[zovn_draw(random, 3)](random, to);
    for (uint64_t changes = zovn_draw(random, CHANGES); changes; changes--)
        to[zovn_draw(random, length < 64 ? length : 64)] = (uint8_t)zovn_draw(random, 256);
    return zovn_draw(random, 4) ? length : (uint32_t)zovn_draw(random, length + 1);
}

/* What is found must lie in the frame: its bytes are read. */
static void read_frame(const uint8_t *bytes, uint32_t length) {
    struct zovn_vxlan_inner inner;
    struct zovn_endpoint sender;
    struct zovn_pfc pfc;
    if (zovn_vxlan_read(bytes, length, &HERE, VNI, &inner) == ZOVN_VXLAN_SOUND)
        totals.frames += zovn_vxlan_source_port(bytes + inner.at, inner.length) > 0;
    totals.pauses += zovn_pfc_read(bytes, length, &pfc);
    totals.answers += zovn_arp_read(bytes, length, &sender);
    totals.inputs++;
}

static void try_frame(uint64_t *random) {
    uint8_t room[ROOM];
    uint32_t length = make(random, room);
    uint8_t *exact = malloc(length ? length : 1);
    if (!exact)
        exit(2);
    memcpy(exact, room, length);
    read_frame(exact, length);
    free(exact);
}

/* Words of a map in any order. */
static void try_map(uint64_t *random) {
    static const char *const WORDS[] = {"host",    "station", "02:00:00:00:00:01", "10.0.0.1",
                                        "1.2.3.4", "\n",      "02:00:00:00:00",    "99999999999"};
    char text[256] = "", problem[ZOVN_LOCATIONS_PROBLEM];
    for (uint64_t words = zovn_draw(random, 10); words; words--) {
        strcat(text, WORDS[zovn_draw(random, 8)]);
        strcat(text, " ");
    }
    char *exact = strdup(text);
    struct zovn_locations *locations = exact ? zovn_locations_read(exact, problem) : NULL;
    totals.maps += locations != NULL;
    zovn_locations_free(locations);
    free(exact);
}

static double seconds_since(const struct timespec *begun) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begun->tv_sec) + (double)(now.tv_nsec - begun->tv_nsec) / 1e9;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    uint64_t random = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    struct timespec begun;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        for (uint32_t i = 0; i < ROUNDS; i++)
            try_frame(&random);
        try_map(&random);
    } while (seconds_since(&begun) < seconds);
    printf("%" PRIu64 " inputs, %" PRIu64 " frames, %" PRIu64 " pauses, %" PRIu64
           " answers, %" PRIu64 " maps\n",
           totals.inputs, totals.frames, totals.pauses, totals.answers, totals.maps);
    return 0;
}
