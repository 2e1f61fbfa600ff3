/* Traffic for measurements, by DPDK's virtio-user: numbered frames that prove what was lost. */
#ifndef ZOVN_TOOLS_GENERATOR_H
#define ZOVN_TOOLS_GENERATOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct rte_mempool;
struct rte_mbuf;

enum {
    GENERATOR_DEVICES = 32, /* DPDK's limit of a process */
    GENERATOR_STATIONS = 128,
    GENERATOR_BURST = 32,
    GENERATOR_HELD = 2048, /* a power of two */
    GENERATOR_SEEN = 1024, /* numbers of which it is known whether they came */
    GENERATOR_BYTES = 64   /* the shortest frame */
};

/* What a station received from another one. */
struct generator_tally {
    uint64_t received, repeated, overtaken, next;
    uint64_t in_time; /* received while it was measured */
    uint64_t seen[GENERATOR_SEEN / 64];
};

/* A device, and frames that are made, but that its ring has not taken yet. */
struct generator_station {
    uint16_t device, number;
    uint16_t targets[GENERATOR_STATIONS], target_count, turn;
    uint64_t made[GENERATOR_STATIONS];
    double rate, tokens;     /* frames a second that it takes, below 0 for all; how many now */
    double granted;          /* frames that it could take while it was measured */
    uint64_t taken, in_time; /* frames that it took; while it was measured */
    struct generator_tally from[GENERATOR_STATIONS];
    struct rte_mbuf *held[GENERATOR_HELD];
    uint16_t held_to[GENERATOR_HELD];
    uint32_t held_first, held_count;
};

/* Pipes from the process that has its turn before this one, and to the next; -1: none. */
struct generator_turns {
    int from, to;
};

struct generator {
    struct generator_station stations[GENERATOR_DEVICES];
    uint16_t count, first, bytes, ring;
    uint64_t window; /* frames of a pair under way; 0: no limit */
    bool fifo;       /* a station's ring is short, and all other frames wait behind it in order */
    bool alone;      /* all receivers are in this process */
    struct generator_turns turns;
    double warm_s, measured_s, took_s;
    uint64_t hz; /* of the time stamp counter */
    struct rte_mempool *pool;
};

/* Fill in the beginning of a frame. */
void generator_write(uint8_t *frame, uint16_t from, uint16_t to, uint64_t number);

/* Count a frame that a station received; return whether it is one of these, and for it. */
bool generator_count(struct generator_station *station, const uint8_t *frame, uint32_t length);

/* Wait until it is this process's turn, and end it. */
void generator_await_turn(struct generator_turns *turns);
void generator_pass_turn(struct generator_turns *turns);

/* Send and receive: to warm up, while it is measured, and until nothing comes. */
void generator_run(struct generator *generator);

/* Send one frame from each station, so that a switch learns where it is. */
void generator_announce(struct generator *generator);

/* Write what was sent and received as JSON. */
void generator_print(const struct generator *generator, FILE *to);

#endif
