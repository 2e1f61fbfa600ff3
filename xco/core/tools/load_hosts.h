// The simulated hosts of the load generator: their messages, and how they use the answers.
//
// Of each rack of 20, the last three are an asker, its rival and the host they send to; all others
// always have a backlog. The rival keeps that link contended, and never waits for a turn: so the
// asker's request is answered as soon as the controller has read it, under each strategy. If every
// host sends to several, there are no roles: all always have a backlog for the hosts that follow.
//
// Under `gcc`, hosts that receive also report the port before them.
#ifndef XCO_TOOLS_LOAD_HOSTS_H
#define XCO_TOOLS_LOAD_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire.h"
#include "tools/load_port.h"

enum xco_load_role { XCO_LOAD_SENDER, XCO_LOAD_ASKER, XCO_LOAD_RIVAL, XCO_LOAD_RECEIVER };
enum xco_load_phase { XCO_LOAD_IDLE, XCO_LOAD_ASKED, XCO_LOAD_ANSWERED };

struct xco_load_host {
    uint8_t role;
    uint8_t phase; // of an asker
    bool joined;
    bool reports_port;     // the controller's strategy is `gcc`
    uint16_t destination;  // the first of them
    uint16_t destinations; // hosts that follow each other
    uint64_t epoch;
    uint64_t heard_sequence;
    uint64_t gave_up_sequence;
    uint64_t next_ns;     // time of an asker's next message
    uint64_t sent_ns;     // the asker's request: its timestamp
    uint64_t sent_wall_ns; // the same by the wall clock, which timestamps arrivals
    struct xco_load_port port;
};

struct xco_load_instant {
    uint64_t now_ns;  // CLOCK_MONOTONIC
    uint64_t wall_ns; // CLOCK_REALTIME
};

struct xco_load {
    uint32_t count;
    struct xco_load_host *hosts;
    uint8_t digest[XCO_DIGEST_BYTES];
    uint8_t nodes_digest[XCO_DIGEST_BYTES];
    uint64_t sequence; // one for all hosts: it rises
    uint64_t random;
    uint64_t unanswered;
    uint64_t *reactions_ns;
    size_t reactions;
    size_t room; // further reactions are not kept
};

// Each host sends to so many `destinations`; 0: hosts have roles. False: no memory.
bool xco_load_init(struct xco_load *load, uint32_t count, uint32_t destinations, uint64_t sequence);
void xco_load_free(struct xco_load *load);

// Writes a host's present message.
void xco_load_speak(struct xco_load *load, uint32_t host, const struct xco_load_instant *at,
                    struct xco_message *message);

// Writes the counters of the port before a host; false: it reports none.
bool xco_load_speak_port(struct xco_load *load, uint32_t host, const struct xco_load_instant *at,
                         struct xco_message *message);

// Takes a message of the controller; `at->wall_ns` is its arrival.
void xco_load_hear(struct xco_load *load, const struct xco_load_instant *at,
                   const struct xco_message *message);

#endif
