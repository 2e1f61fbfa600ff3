// The coordinator's plain configuration, as xco/coordinator/config.py writes it.
//
// One `key value` a line. Repeated keys: `controller ADDRESS PORT`, `address ADDRESS HOST`, `peer
// ADDRESS HOST` (where a host's coordinator listens), `over HOST LINK BITS_PER_S` (a link on the
// path to a host, and its safe rate), `vm INTERFACE WEIGHT GUARANTEE_MBPS` (a VM with a share of
// its own, by the host's end of its link). Every other key is a field below and appears once.
#ifndef XCO_COORDINATOR_CONFIG_H
#define XCO_COORDINATOR_CONFIG_H

#include <net/if.h>
#include <stdio.h>

#include "coordinator/engine/flows.h"
#include "coordinator/engine/state.h"

#define XCO_CONTROLLERS 4
#define XCO_PATH_BYTES 256

struct xco_host_address {
    struct in6_addr address;
    uint16_t host;
};

struct xco_config_vm {
    char interface[IF_NAMESIZE];
    struct xco_slot share;
};

struct xco_coordinator_config {
    char interface[IF_NAMESIZE];
    char key_file[XCO_PATH_BYTES];
    char statistics[XCO_PATH_BYTES]; // empty: none are published
    char epoch_file[XCO_PATH_BYTES]; // empty: the highest epoch is forgotten at a restart
    uint8_t digest[XCO_DIGEST_BYTES];       // of the hosts' names
    uint8_t nodes_digest[XCO_DIGEST_BYTES]; // of all nodes' names
    uint64_t attached;                      // node at the other end of the host's link
    char classifier[XCO_PATH_BYTES]; // the BPF programs' file; empty: u32 filters classify
    char shim[XCO_PATH_BYTES];       // file of the programs that count marks; empty: not counted
    uint64_t shim_keep;              // 1: guests see their own marks
    char marks[XCO_PATH_BYTES];      // where the counts are published
    char vms_file[XCO_PATH_BYTES];   // where the VMs that are here are published
    char places_file[XCO_PATH_BYTES]; // where it is published at which host each MAC address is
    char locations_file[XCO_PATH_BYTES]; // which the shell writes from it, and an earlier loop's
    char switch_socket[108]; // control socket of zovn's switch; empty: it is not asked
    uint64_t classifier_needed;      // 1: no fallback to u32
    uint64_t edt;                    // 1: departure-time gates where the kernel supports them
    uint64_t edt_needed;             // 1: no fallback to token buckets
    struct xco_tree tree;
    struct xco_core_config core;
    uint64_t flow_bytes, flow_window_ns, flow_idle_ns;
    uint64_t spin_ns;     // longest busy wait before a gate's time
    uint64_t scan_ns;     // interval between scans for new flows
    uint64_t hang_ns;     // the guard kills a loop that makes no progress for this long
    uint64_t drain_ns;    // on exit, for waiting packets to leave
    uint64_t priority;    // SCHED_FIFO priority; 0: ordinary scheduling
    struct sockaddr_in6 controllers[XCO_CONTROLLERS];
    size_t controller_count;
    struct xco_host_address *addresses; // sorted
    size_t address_count;
    struct xco_host_address *peers; // where hosts listen to each other
    size_t peer_count;
    uint64_t hosts;     // of the topology
    uint64_t peer_port; // where they listen
    uint64_t admission_ppm; // marks of so many packets refuse connections; 0: none is
    uint64_t published; // 1: they share links by the published law of HyGenICC
    uint64_t port_bps;  // of the port that leads to this host
    struct xco_config_vm *vms; // sorted; none: queues by interface, all alike
    size_t vm_count;
    struct xco_way *ways; // by host
    size_t host_count;
};

// Reads a file; false with a message that names line and key.
bool xco_config_read(struct xco_coordinator_config *config, FILE *file, char *message, size_t room);
void xco_config_free(struct xco_coordinator_config *config);

// Returns the host that has an address; XCO_CONTROLLER: outside the topology.
uint16_t xco_config_host(const struct xco_coordinator_config *config,
                         const struct in6_addr *address);
// Returns the number of the VM with an interface; vm_count: it is not listed.
size_t xco_config_vm(const struct xco_coordinator_config *config, const char *interface);
// Returns how many hosts have a number, or more: the configuration need not say.
uint32_t xco_config_hosts(const struct xco_coordinator_config *config);
// Returns the way to a host; one without links if the configuration names none.
const struct xco_way *xco_config_way(const struct xco_coordinator_config *config, uint16_t host);

#endif
