// What is simulated: read from standard input, a key and its values on each line.
#ifndef CONFIG_H
#define CONFIG_H

#include <stdint.h>
#include <stdio.h>

enum algorithm { TCP_NEWRENO, TCP_CUBIC, TCP_VEGAS };

struct flow {
    int64_t source_host, source_vm, host, vm; // receiver last
    int64_t bytes, start_ps, class;
    int64_t datagrams; // 1: UDP as fast as the VM can; 0: TCP
};

struct config {
    // Topology.
    int64_t pods, chassis, servers, vms, aggregations, cores;
    int64_t link_ps_per_byte, vm_ps_per_byte, hop_ps, stack_ps;
    // Flow control and buffers.
    int64_t virtual_lossless, physical_lossless, blocking, classes, background_class;
    int64_t virtual_queue, buffer;
    // Sizes in bytes.
    int64_t mtu, overlay, request, reply;
    // TCP; windows in segments.
    int64_t tcp, window, initial_window, restart_idle;
    int64_t rto_min_ps, rto_slop_ps, delayed_ack_ps;
    // Traffic.
    int64_t queries, interval_ps, gap_ps, socket, seed, limit_ps;
    struct flow *flows;
    uint32_t flow_count;
};

// Exits with 2 and a message that names the line if the input is not valid.
struct config config_read(FILE *file);

#endif
