// Messages between the controller, the local coordinators and the port agents.
//
// One datagram is one message: a header, a body, and an authenticator over both (keyed BLAKE2b of
// 16 bytes; the key is the host's for this direction, see common/keys.h). All numbers are
// little-endian. Messages are states, not increments: the next one makes up for a lost one.
// docs/reference/xco-protocol.md describes the protocol, xco/protocol/wire.py mirrors it.
#ifndef XCO_COMMON_MESSAGE_H
#define XCO_COMMON_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/place_log.h"

#define XCO_WIRE_VERSION 5
#define XCO_CONTROLLER 0xffffu   // the host field of the controller's messages
#define XCO_AGENT 0xfffeu        // the host field of port agents' messages
#define XCO_HOSTS_MAX 0xfffeu    // hosts are 0 to 0xfffd
#define XCO_NODES_MAX 0x1fffcu   // hosts and switches
#define XCO_KEY_BYTES 32
#define XCO_AUTH_BYTES 16
#define XCO_DIGEST_BYTES 32
#define XCO_HEADER_BYTES 32
#define XCO_ENTRIES_MAX 64       // most destinations in one report or directive
#define XCO_LOCATED_MAX 34       // most addresses in one PLACES or MAP
#define XCO_PORTS_MAX 16         // most ports in one PORT
#define XCO_DATAGRAM_MAX 1360    // a report of 64 entries; below every usual MTU
#define XCO_TIME_MAX (UINT64_C(1) << 61) // times stay below: sums of four cannot overflow

enum xco_type {
    XCO_HELLO = 1,     // host to controller: request to join
    XCO_WELCOME = 2,   // controller to host: joined, or why not
    XCO_REPORT = 3,    // host to controller: the whole backlog here
    XCO_DIRECTIVE = 4, // controller to host: what the host may send
    XCO_LEAVE = 5,     // host to controller: do not schedule me
    XCO_PLACES = 6,    // host to controller: which addresses are behind me, since a version
    XCO_MAP = 7,       // controller to host: which address is at which host, since a version
    XCO_MARKS = 8,     // host to host: what arrived from you, and what you may send to me
    XCO_PORT = 9,      // port agent, or a host for its own port, to controller: a port's counters
};

// What a directive permits from start_ns to end_ns. Before start_ns the preceding directive stays
// in force (up to its own end). After end_ns all coordinated gates are closed. end_ns 0: until the
// next one.
enum xco_mode {
    XCO_CLOSED = 0, // nothing
    XCO_SLICE = 1,  // the entries' destinations at the entries' rates: a timeslice
    XCO_RATE = 2,   // the same, without a slice's bounds: rate limiting
    XCO_OPEN = 3,   // everything, uncoordinated
};

enum xco_strategy { XCO_TIMESLICE = 0, XCO_BY_RATE = 1, XCO_HYBRID = 2, XCO_GCC = 3 };

enum xco_welcome_status {
    XCO_JOINED = 0,
    XCO_TOPOLOGY_DIFFERS = 1, // the host's topology file differs from the controller's
    XCO_UNKNOWN_HOST = 2,     // the topology has no host of this index
    XCO_HELLO_FIRST = 3,      // this controller does not know you (any longer): say HELLO
};

// Bits of a report's flags.
#define XCO_FLAG_FELL_BACK 0x1u // silence lasted too long: the host keeps to its safe shares
#define XCO_FLAG_MORE 0x2u      // more destinations wait than fit into a report

struct xco_header {
    uint8_t type;      // enum xco_type
    uint16_t host;     // the sender: a host's index, or XCO_CONTROLLER
    uint64_t epoch;    // controller: its own; host: the highest it has heard (0: none)
    uint64_t sequence; // rises with every datagram of a sender; hosts start at Unix nanoseconds
    uint64_t sent_ns;  // the sender's CLOCK_MONOTONIC
};

struct xco_hello {
    uint8_t digest[XCO_DIGEST_BYTES]; // of the topology (xco/controller/loopfile.py)
};

struct xco_welcome {
    uint16_t to;               // the host being answered, or XCO_AGENT
    uint8_t status;            // enum xco_welcome_status
    uint8_t strategy;          // enum xco_strategy
    uint64_t slice_ns;         // length of a timeslice
    uint64_t silence_ns;       // a host falls back after this long without a directive
    uint64_t echo_sent_ns;     // sent_ns of the message being answered, host's clock
    uint64_t echo_received_ns; // when that arrived, controller's clock
};

struct xco_waiting {
    uint16_t destination;    // host
    uint32_t backlog_bytes;  // bytes in the gate's queue; saturates
    uint32_t rate_kbps;      // recent send rate, kbit/s
    uint64_t sent_bytes;     // 48 bits of all bytes through its gate; begins again with the queue
    uint16_t weight;         // sum over the VMs here that send to it; 0: no VM is listed
    uint16_t guarantee_mbps; // what these VMs are promised to it, as far as they use it
};

struct xco_report {
    uint16_t flags;
    uint16_t count;
    uint64_t directive_sequence; // of the newest directive heard in this epoch; 0: none
    uint64_t gave_up_sequence;   // of the directive whose slice is given up; 0: none
    uint64_t free_ns;            // when that slice ends, controller's clock; 0: immediately
    struct xco_waiting entries[XCO_ENTRIES_MAX];
};

struct xco_permit {
    uint16_t destination; // host
    uint64_t rate_bps;    // 0: as fast as the host can
};

struct xco_directive {
    uint16_t to;  // the receiving host; no other host may obey it
    uint8_t mode; // enum xco_mode
    uint16_t count;
    uint64_t start_ns;         // controller's clock
    uint64_t end_ns;           // controller's clock; 0: until the next directive
    uint64_t echo_sent_ns;     // sent_ns of the last report, host's clock; 0: none yet
    uint64_t echo_received_ns; // when that arrived, controller's clock
    struct xco_permit entries[XCO_ENTRIES_MAX];
};

// The changes of a log (common/place_log.h) between two of its versions. In PLACES the values are
// the host itself, or XCO_NOWHERE.
struct xco_map {
    uint16_t to; // the receiving host; in PLACES XCO_CONTROLLER
    uint16_t count;
    uint64_t from;  // the version that the reader must have; 0: start over
    uint64_t until; // the version that the reader has then
    uint64_t last;  // the newest version; `until` below it: more follows
    uint64_t heard; // the writer's version of the reader's own log
    struct xco_located entries[XCO_LOCATED_MAX];
};

// Counters are cumulative; one that falls was restarted.
struct xco_arrivals {
    uint8_t digest[XCO_DIGEST_BYTES]; // of the hosts' names
    uint16_t to;        // the host being written to
    uint16_t weight;    // of what waits for `to`, as in xco_waiting
    uint16_t guarantee_mbps;
    uint64_t read_ns;   // when the counters were read, the sender's clock
    uint64_t packets;   // that arrived from `to`
    uint64_t bytes;     // of these
    uint64_t marks;     // of the packets, but for those that the sender's own port explains
    uint64_t offer_bps; // what `to` may send to the sender; 0: no offer
    uint64_t wants_bps; // what the sender could send to `to`; 0: nothing waits for it
};

// A port of the tree: the directed link from node `source` to node `target` (hosts first, then
// switches). Counters are cumulative; one that falls was restarted.
struct xco_port {
    uint32_t source;
    uint32_t target;
    uint64_t read_ns; // when the counters were read, the agent's clock
    uint64_t packets; // that left the port
    uint64_t bytes;
    uint64_t coordinated_bytes; // of these, from hosts of the topology; only hosts know it
    uint64_t marks;
    uint64_t drops;
    uint64_t backlog_bytes; // waiting now
};

struct xco_ports {
    uint8_t digest[XCO_DIGEST_BYTES]; // of the names of all nodes
    uint16_t count;
    struct xco_port entries[XCO_PORTS_MAX];
};

struct xco_message {
    struct xco_header header;
    union {
        struct xco_hello hello;
        struct xco_welcome welcome;
        struct xco_report report;
        struct xco_directive directive;
        struct xco_map map;
        struct xco_arrivals arrivals;
        struct xco_ports ports;
    } body;
};

#endif
