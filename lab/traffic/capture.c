/* Capture: timestamps and counts the IPv4 packets that an interface receives, by source.
 *
 * The kernel timestamps each packet on arrival and returns blocks of them (TPACKET_V3,
 * networking/packet_mmap), without a system call per packet. With --output, each packet is
 * a record of 16 bytes in the byte order of this machine: u64 CLOCK_MONOTONIC in ns, u32 source
 * address, u32 length of the frame in bytes (low 24 bits) and IP protocol (high 8 bits).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "roles.h"

#define BLOCK_BYTES (1 << 18)
#define BLOCKS 64
#define FRAME_BYTES 2048
#define RETIRE_MS 10
#define RECORDS_BUFFER (1 << 20)
#define IPV4_HEADER 20
#define PROTOCOL_AT 9
#define SOURCE_AT 12
#define HEAD_BYTES 64

struct record {
    uint64_t at_ns;
    uint32_t source;
    uint32_t length_and_protocol;
};

struct capture {
    int fd;
    unsigned char *ring;
    size_t block; /* the next one to read */
    FILE *output;
    uint64_t packets, missed;
    struct sources sources;
};

/* Write the counts, and how many packets did not fit the ring, which are not counted. */
static void write_capture(void *role) {
    struct capture *all = role;
    struct tpacket_stats_v3 statistics;
    socklen_t size = sizeof statistics;
    if (getsockopt(all->fd, SOL_PACKET, PACKET_STATISTICS, &statistics, &size) != 0) {
        fail("PACKET_STATISTICS");
    }
    all->missed += statistics.tp_drops; /* reading resets it */
    printf(",\"packets\":%" PRIu64 ",\"missed\":%" PRIu64, all->packets, all->missed);
    sources_write(&all->sources);
    if (all->output != NULL && fflush(all->output) != 0) {
        fail("--output");
    }
}

/* Return how far the monotonic clock is behind the wall clock, which stamps packets. */
static uint64_t wall_ahead_ns(void) {
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    return (uint64_t)wall.tv_sec * NS_PER_S + (uint64_t)wall.tv_nsec - now_ns();
}

static void take_packet(struct capture *all, const struct tpacket3_hdr *header, uint64_t ahead_ns) {
    const unsigned char *packet = (const unsigned char *)header + header->tp_net;
    size_t present = header->tp_snaplen - (size_t)(header->tp_net - header->tp_mac);
    if (present < IPV4_HEADER) {
        return;
    }
    uint32_t address;
    memcpy(&address, packet + SOURCE_AT, sizeof address);
    struct source *source = source_of(&all->sources, ntohl(address));
    source->bytes += header->tp_len;
    source->count++;
    all->packets++;
    const struct record record = {
        header->tp_sec * NS_PER_S + header->tp_nsec - ahead_ns, source->address,
        (header->tp_len & 0xffffff) | (uint32_t)packet[PROTOCOL_AT] << 24};
    if (all->output != NULL && fwrite(&record, sizeof record, 1, all->output) != 1) {
        fail("--output");
    }
}

static bool take_block(struct capture *all) {
    struct tpacket_block_desc *block = (void *)(all->ring + all->block * BLOCK_BYTES);
    if (!(__atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) {
        return false;
    }
    const uint64_t ahead_ns = wall_ahead_ns();
    const unsigned char *at = (unsigned char *)block + block->hdr.bh1.offset_to_first_pkt;
    for (uint32_t i = 0; i < block->hdr.bh1.num_pkts; i++) {
        const struct tpacket3_hdr *header = (const void *)at;
        take_packet(all, header, ahead_ns);
        at += header->tp_next_offset;
    }
    __atomic_store_n(&block->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    all->block = (all->block + 1) % BLOCKS;
    return true;
}

/* Make the kernel copy only the head of each packet; its length stays known. */
static void copy_heads(int fd) {
    struct sock_filter keep_head = BPF_STMT(BPF_RET | BPF_K, HEAD_BYTES);
    struct sock_fprog program = {1, &keep_head};
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0) {
        fail("SO_ATTACH_FILTER");
    }
}

static void make_ring(struct capture *all) {
    struct tpacket_req3 request = {
        .tp_block_size = BLOCK_BYTES,
        .tp_block_nr = BLOCKS,
        .tp_frame_size = FRAME_BYTES,
        .tp_frame_nr = BLOCK_BYTES / FRAME_BYTES * BLOCKS,
        .tp_retire_blk_tov = RETIRE_MS,
    };
    set_option(all->fd, SOL_PACKET, PACKET_VERSION, TPACKET_V3);
    set_option(all->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
    if (setsockopt(all->fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request) != 0) {
        fail("PACKET_RX_RING");
    }
    size_t size = (size_t)BLOCK_BYTES * BLOCKS;
    all->ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, all->fd, 0);
    if (all->ring == MAP_FAILED) {
        fail("mmap");
    }
}

static void open_capture(struct capture *all, const struct options *options) {
    const char *output = option_text(options, "--output", NULL);
    struct sockaddr_ll here = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP)};
    here.sll_ifindex = (int)if_nametoindex(option_needed(options, "--interface"));
    all->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (here.sll_ifindex == 0 || all->fd < 0) {
        fail("--interface");
    }
    copy_heads(all->fd);
    make_ring(all);
    if (output != NULL && ((all->output = fopen(output, "wb")) == NULL ||
                           setvbuf(all->output, NULL, _IOFBF, RECORDS_BUFFER) != 0)) {
        fail("--output %s", output);
    }
    if (bind(all->fd, (struct sockaddr *)&here, sizeof here) != 0) {
        fail("bind");
    }
}

void capture(const struct options *options) {
    struct capture *all = allocate(1, sizeof *all);
    open_capture(all, options);
    struct pollfd polls[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = all->fd, .events = POLLIN}};
    say_ready();
    do {
        while (take_block(all)) {
        }
        if (poll(polls, 2, -1) < 0) {
            fail("poll");
        }
        while (take_block(all)) {
        }
        if ((polls[1].revents & POLLERR) != 0) {
            errno = 0;
            fail("the interface is gone or down");
        }
    } while (polls[0].revents == 0 || obey(write_capture, all));
    if (all->output != NULL && fclose(all->output) != 0) {
        fail("--output");
    }
    munmap(all->ring, (size_t)BLOCK_BYTES * BLOCKS);
    free(all);
}
