// What messages between the controller and the local coordinators say.
//
// One datagram is one message: a header, a body, and an authenticator over both (keyed BLAKE2b of 16
// bytes; the key is the host's for this direction, see common/keys.h). All numbers are little-endian.
// Messages are states, not increments: losing one is cured by the next. docs/xco-protocol.md tells
// the protocol, xco/protocol/wire.py mirrors it.
#ifndef XCO_COMMON_MESSAGE_H
#define XCO_COMMON_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/place_log.h"

#define XCO_WIRE_VERSION 2
#define XCO_CONTROLLER 0xffffu   // the header's host in messages of the controller
#define XCO_HOSTS_MAX 0xfffeu    // hosts are 0 to 0xfffd
#define XCO_KEY_BYTES 32
#define XCO_AUTH_BYTES 16
#define XCO_DIGEST_BYTES 32
#define XCO_HEADER_BYTES 32
#define XCO_ENTRIES_MAX 64       // destinations in one report or directive
#define XCO_LOCATED_MAX 34       // addresses in one PLACES or MAP
#define XCO_DATAGRAM_MAX 856     // a directive of 64 entries; below every usual MTU
#define XCO_TIME_MAX (UINT64_C(1) << 61) // times and durations are below: sums of four cannot overflow

enum xco_type {
    XCO_HELLO = 1,     // host to controller: let me join
    XCO_WELCOME = 2,   // controller to host: you did, or why not
    XCO_REPORT = 3,    // host to controller: all that waits here
    XCO_DIRECTIVE = 4, // controller to host: what may be sent
    XCO_LEAVE = 5,     // host to controller: do not schedule me
    XCO_PLACES = 6,    // host to controller: which addresses are behind me, since a version
    XCO_MAP = 7,       // controller to host: which address is at which host, since a version
};

// What a directive permits from start_ns to end_ns. Before start_ns the directive before it goes on
// (to its own end); after end_ns everything coordinated is closed. end_ns 0: until the next one.
enum xco_mode {
    XCO_CLOSED = 0, // nothing
    XCO_SLICE = 1,  // the entries' destinations at the entries' rates: a timeslice
    XCO_RATE = 2,   // the same, without a slice's bounds: rate limiting
    XCO_OPEN = 3,   // everything, uncoordinated
};

enum xco_strategy { XCO_TIMESLICE = 0, XCO_BY_RATE = 1, XCO_HYBRID = 2 };

enum xco_welcome_status {
    XCO_JOINED = 0,
    XCO_TOPOLOGY_DIFFERS = 1, // the host's topology file is not the controller's
    XCO_UNKNOWN_HOST = 2,     // the topology has no host of this index
    XCO_HELLO_FIRST = 3,      // this controller does not know you yet, or no more: say HELLO
};

// Bits of a report's flags.
#define XCO_FLAG_FELL_BACK 0x1u // was silent for too long: the host keeps to its safe shares
#define XCO_FLAG_MORE 0x2u      // more destinations wait than a report has room for

struct xco_header {
    uint8_t type;      // enum xco_type
    uint16_t host;     // who sends: a host's index, or XCO_CONTROLLER
    uint64_t epoch;    // controller: its own; host: the highest that it has heard (0: none)
    uint64_t sequence; // rises with every datagram of a sender; hosts start at Unix nanoseconds
    uint64_t sent_ns;  // the sender's CLOCK_MONOTONIC
};

struct xco_hello {
    uint8_t digest[XCO_DIGEST_BYTES]; // of the topology (xco/controller/loopfile.py)
};

struct xco_welcome {
    uint16_t to;               // the host that is answered
    uint8_t status;            // enum xco_welcome_status
    uint8_t strategy;          // enum xco_strategy
    uint64_t slice_ns;         // length of a timeslice
    uint64_t silence_ns;       // without a directive for so long, a host falls back
    uint64_t echo_sent_ns;     // sent_ns of the message that is answered, host's clock
    uint64_t echo_received_ns; // when that arrived, controller's clock
};

struct xco_waiting {
    uint16_t destination;   // host
    uint32_t backlog_bytes; // in the gate's queue; saturates
    uint32_t rate_kbps;     // sent of late, kbit/s
};

struct xco_report {
    uint16_t flags;
    uint16_t count;
    uint64_t directive_sequence; // of the newest directive heard in this epoch; 0: none
    uint64_t gave_up_sequence;   // of the directive whose slice is given up; 0: none
    uint64_t free_ns;            // when that slice ends, controller's clock; 0: at once
    struct xco_waiting entries[XCO_ENTRIES_MAX];
};

struct xco_permit {
    uint16_t destination; // host
    uint64_t rate_bps;    // 0: as fast as the host can
};

struct xco_directive {
    uint16_t to;  // the host that it is for; another one must not obey it
    uint8_t mode; // enum xco_mode
    uint16_t count;
    uint64_t start_ns;         // controller's clock
    uint64_t end_ns;           // controller's clock; 0: until the next directive
    uint64_t echo_sent_ns;     // sent_ns of the last report, host's clock; 0: none yet
    uint64_t echo_received_ns; // when that arrived, controller's clock
    struct xco_permit entries[XCO_ENTRIES_MAX];
};

// What has changed of a log (common/place_log.h) between two of its versions. Of PLACES the values are the
// host itself, or XCO_NOWHERE.
struct xco_map {
    uint16_t to; // the host that it is for; of PLACES XCO_CONTROLLER
    uint16_t count;
    uint64_t from;  // what the reader must have to go on with it; 0: it begins anew
    uint64_t until; // what the reader has then
    uint64_t last;  // what there is; `until` below it: more follows
    uint64_t heard; // of the reader's own log: what the writer has
    struct xco_located entries[XCO_LOCATED_MAX];
};

struct xco_message {
    struct xco_header header;
    union {
        struct xco_hello hello;
        struct xco_welcome welcome;
        struct xco_report report;
        struct xco_directive directive;
        struct xco_map map;
    } body;
};

#endif
