// Sees outgoing packets without a queue of their own, so that large flows get one.
#include "qdisc/watch.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#define HEAD_BYTES 40 // of a packet: both addresses, in IPv6 too
#define ROOM_BYTES (1 << 20)
#define FIXED 32
#define FARTHEST 255      // most instructions that a jump can skip
#define MIX 2654435761u   // odd, and its bits are well mixed (Knuth, section 6.4)

struct program {
    size_t used;
    struct sock_filter code[FIXED + XCO_FLOWS + (XCO_FLOWS / FARTHEST + 2) * 2];
};

static void load(struct program *program, uint16_t size, uint32_t offset) {
    program->code[program->used++] =
        (struct sock_filter){.code = (uint16_t)(BPF_LD | size | BPF_ABS), .k = offset};
}

// Skips `yes` or `no` instructions; `test` is BPF_JEQ or BPF_JGE.
static void jump(struct program *program, uint16_t test, uint32_t value, uint8_t yes, uint8_t no) {
    uint16_t code = (uint16_t)(BPF_JMP | test | BPF_K);
    program->code[program->used++] =
        (struct sock_filter){.code = code, .jt = yes, .jf = no, .k = value};
}

static void answer(struct program *program, uint32_t bytes) {
    program->code[program->used++] = (struct sock_filter){.code = BPF_RET | BPF_K, .k = bytes};
}

static void add(struct program *program, uint16_t code, uint32_t value) {
    program->code[program->used++] = (struct sock_filter){.code = code, .k = value};
}

// A pair as one number, of the last word of each address, as the filter computes it.
static uint32_t mark_of(const struct xco_pair *pair) {
    return ntohl(pair->source.s6_addr32[3]) * MIX + ntohl(pair->destination.s6_addr32[3]);
}

// Writes the marks of one family's flows; returns their number.
static size_t marks_of(const struct xco_pair *pairs, size_t count, bool four,
                       uint32_t marks[XCO_FLOWS]) {
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (four == (IN6_IS_ADDR_V4MAPPED(&pairs[i].source) != 0)) {
            marks[used++] = mark_of(&pairs[i]);
        }
    }
    return used;
}

// Rejects each flow of one family by one comparison, so that the program stays within a socket's
// limit (net.core.optmem_max). Of two flows with the same mark the second stays a newcomer: with
// 256 flows and one other this happens once in 16 million.
static void refuse_flows(struct program *program, const struct xco_pair *pairs, size_t count,
                         bool four) {
    uint32_t marks[XCO_FLOWS];
    size_t left = marks_of(pairs, count, four, marks);
    load(program, BPF_W, four ? 12 : 20);
    add(program, BPF_ALU | BPF_MUL | BPF_K, MIX);
    add(program, BPF_MISC | BPF_TAX, 0);
    load(program, BPF_W, four ? 16 : 36);
    add(program, BPF_ALU | BPF_ADD | BPF_X, 0);
    while (left > 0) {
        size_t group = left < FARTHEST ? left : FARTHEST;
        for (size_t behind = group; behind > 0; behind--) {
            jump(program, BPF_JEQ, marks[--left], (uint8_t)behind, 0);
        }
        add(program, BPF_JMP | BPF_JA, 1);
        answer(program, 0);
    }
    answer(program, HEAD_BYTES);
}

// Rejects packets that are not outgoing, not IP or small. IPv6 continues after it; the returned
// place is IPv4's jump, which has no target yet.
static size_t refuse_others(struct program *program, uint32_t small_bytes) {
    load(program, BPF_B, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE));
    jump(program, BPF_JEQ, PACKET_OUTGOING, 1, 0);
    answer(program, 0);
    load(program, BPF_H, (uint32_t)(SKF_AD_OFF + SKF_AD_PROTOCOL));
    jump(program, BPF_JEQ, ETH_P_IP, 0, 4);
    load(program, BPF_H, 2);
    jump(program, BPF_JGE, small_bytes, 1, 0);
    answer(program, 0);
    size_t four = program->used++;
    jump(program, BPF_JEQ, ETH_P_IPV6, 1, 0);
    answer(program, 0);
    load(program, BPF_H, 4);
    jump(program, BPF_JGE, small_bytes, 1, 0);
    answer(program, 0);
    return four;
}

int xco_watch_except(int watch, uint32_t small_bytes, const struct xco_pair *pairs, size_t count) {
    struct program program = {0};
    size_t four = refuse_others(&program, small_bytes);
    refuse_flows(&program, pairs, count, false);
    program.code[four] =
        (struct sock_filter){.code = BPF_JMP | BPF_JA, .k = (uint32_t)(program.used - four - 1)};
    refuse_flows(&program, pairs, count, true);
    struct sock_fprog filter = {.len = (uint16_t)program.used, .filter = program.code};
    int done = setsockopt(watch, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
    return done < 0 ? -errno : 0;
}

// Sets up a socket that is bound only after its filter is attached, so that it never sees more.
static int set_up(int watch, int interface, uint32_t small_bytes) {
    int room = ROOM_BYTES;
    struct sockaddr_ll place = {.sll_family = AF_PACKET, .sll_ifindex = interface};
    place.sll_protocol = htons(ETH_P_ALL); // only sockets for all protocols see outgoing packets
    int error = xco_watch_except(watch, small_bytes, NULL, 0);
    if (error == 0 && (setsockopt(watch, SOL_SOCKET, SO_RCVBUF, &room, sizeof room) < 0 ||
                       bind(watch, (struct sockaddr *)&place, sizeof place) < 0)) {
        error = -errno;
    }
    return error;
}

int xco_watch_open(int interface, uint32_t small_bytes) {
    int watch = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (watch < 0) {
        return -errno;
    }
    int error = set_up(watch, interface, small_bytes);
    if (error != 0) {
        close(watch);
        return error;
    }
    return watch;
}

static bool sight_of_6(const uint8_t *packet, struct xco_sight *sight) {
    memcpy(&sight->pair.source, packet + 8, 16);
    memcpy(&sight->pair.destination, packet + 24, 16);
    sight->bytes = 40u + ((uint32_t)packet[4] << 8 | packet[5]);
    // IPv6 packets must not have mapped addresses, the form of IPv4 addresses here
    return !IN6_IS_ADDR_V4MAPPED(&sight->pair.source);
}

static void map(const uint8_t *address, struct in6_addr *mapped) {
    *mapped = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(mapped->s6_addr + 12, address, 4);
}

bool xco_sight_of(const uint8_t *packet, size_t length, struct xco_sight *sight) {
    if (length >= 40 && packet[0] >> 4 == 6) {
        return sight_of_6(packet, sight);
    }
    if (length < 20 || packet[0] >> 4 != 4) {
        return false;
    }
    map(packet + 12, &sight->pair.source);
    map(packet + 16, &sight->pair.destination);
    sight->bytes = (uint32_t)packet[2] << 8 | packet[3];
    return true;
}

int xco_watch_take(int watch, struct xco_sight *sights, int room) {
    int count = 0;
    while (count < room) {
        uint8_t head[HEAD_BYTES];
        ssize_t got = recv(watch, head, sizeof head, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return errno == EAGAIN || count > 0 ? count : -errno;
        }
        count += xco_sight_of(head, (size_t)got, &sights[count]);
    }
    return count;
}
