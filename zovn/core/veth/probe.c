/* Whether this kernel lets a veth be without loss: tried, in a network namespace of its own. */
#include "veth/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "veth/pair.h"
#include "veth/veth_port.h"

/* More than ring and port hold together, and fewer than the sender's queue does. */
enum { FRAMES = 3000, FRAME_BYTES = 60, SERIAL_AT = 14, SEND_BUFFER = 16 << 20 };
enum { BATCH = 64, PAUSE_MS = 20, PATIENCE_MS = 1000 };

/* What came through the port so far. */
struct arrived {
    uint32_t frames;
    bool in_order;
};

static void rest_ms(long ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* The container's side: frames of a type for experiments. */
static int open_sender(void) {
    int room = SEND_BUFFER;
    struct sockaddr_ll place = {.sll_family = AF_PACKET,
                                .sll_ifindex = (int)if_nametoindex(ZOVN_PAIR_CONTAINER)};
    int sender = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (sender >= 0 && !bind(sender, (struct sockaddr *)&place, sizeof place) &&
        !setsockopt(sender, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room))
        return sender;
    if (sender >= 0)
        close(sender);
    return -1;
}

/* Return how many frames the kernel took. */
static uint32_t flood(int sender, uint32_t from, uint32_t count) {
    uint8_t frame[FRAME_BYTES] = {
        [0] = 2, [6] = 2, [12] = ETH_P_802_EX1 >> 8, ETH_P_802_EX1 & 0xff};
    uint32_t sent = 0;
    for (; sent < count; sent++) {
        uint32_t serial = from + sent;
        memcpy(frame + SERIAL_AT, &serial, sizeof serial);
        if (send(sender, frame, sizeof frame, MSG_DONTWAIT) < 0)
            break;
    }
    return sent;
}

/* Other frames are those that IPv6 sends by itself. */
static void note(struct arrived *arrived, const struct zovn_frame *frame) {
    uint8_t head[SERIAL_AT + sizeof(uint32_t)];
    uint32_t serial;
    if (frame->length < FRAME_BYTES)
        return;
    zovn_frame_peek(frame, head, sizeof head);
    memcpy(&serial, head + SERIAL_AT, sizeof serial);
    if (head[12] != ETH_P_802_EX1 >> 8 || head[13] != (ETH_P_802_EX1 & 0xff))
        return;
    arrived->in_order &= serial == arrived->frames;
    arrived->frames++;
}

static uint32_t step(struct zovn_port *port, struct arrived *arrived) {
    uint16_t heads[BATCH];
    uint32_t count = port->calls->peek(port, heads, BATCH);
    for (uint32_t i = 0; i < count; i++) {
        struct zovn_frame frame;
        port->calls->frame(port, heads[i], &frame);
        note(arrived, &frame);
        port->calls->complete(port, heads[i]);
    }
    port->calls->publish(port);
    return count;
}

/* Step the port until so many frames have come, or none comes for long. */
static void await(struct zovn_port *port, struct arrived *arrived, uint32_t frames) {
    for (int idle_ms = 0; arrived->frames < frames && idle_ms < PATIENCE_MS;) {
        if (step(port, arrived)) {
            idle_ms = 0;
        } else {
            rest_ms(1);
            idle_ms++;
        }
    }
}

static bool judge(const struct arrived *arrived, uint32_t sent, char *why) {
    if (sent < FRAMES)
        snprintf(why, ZOVN_VETH_PROBLEM, "the kernel took only %u of %u frames", sent, FRAMES);
    else if (arrived->frames < sent)
        snprintf(why, ZOVN_VETH_PROBLEM, "it lost %u of %u frames that met a full ring",
                 sent - arrived->frames, sent);
    else if (!arrived->in_order)
        snprintf(why, ZOVN_VETH_PROBLEM, "frames arrived in another order than they were sent");
    else
        return true;
    return false;
}

static bool try_port(struct zovn_port *port, int sender, char *why) {
    struct arrived arrived = {.in_order = true};
    uint32_t sent = flood(sender, 0, 1);
    await(port, &arrived, sent); /* now the port knows its NAPI */
    if (zovn_veth_port_state(port) != ZOVN_VETH_RUNS) {
        snprintf(why, ZOVN_VETH_PROBLEM, "a poller does not learn which NAPI to run");
        return false;
    }
    sent += flood(sender, sent, FRAMES - sent);
    rest_ms(PAUSE_MS);
    await(port, &arrived, sent);
    return judge(&arrived, sent, why);
}

/* The reason of a missing right or file: nothing is known then. */
static enum zovn_veth_probed untried(char *why, const char *what, int error) {
    snprintf(why, ZOVN_VETH_PROBLEM, "cannot %s: %s", what, strerror(error));
    return ZOVN_VETH_UNKNOWN;
}

static enum zovn_veth_probed try_sender(struct zovn_port *port, char *why) {
    int sender = open_sender();
    if (sender < 0)
        return untried(why, "send frames", errno);
    bool lossless = try_port(port, sender, why);
    close(sender);
    return lossless ? ZOVN_VETH_LOSSLESS : ZOVN_VETH_LOSSY;
}

static enum zovn_veth_probed try_pair(char *why) {
    int error = zovn_pair_make(FRAMES + BATCH);
    if (error)
        return untried(why, "make a veth", -error);
    struct zovn_port *port = zovn_veth_port_new(ZOVN_PAIR_HOST, why);
    if (!port)
        return ZOVN_VETH_LOSSY;
    enum zovn_veth_probed result = try_sender(port, why);
    port->calls->free(port);
    return result;
}

enum zovn_veth_probed zovn_veth_probe(char *why) {
    *why = 0;
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (home < 0)
        return untried(why, "find the network namespace", errno);
    enum zovn_veth_probed result =
        unshare(CLONE_NEWNET) ? untried(why, "make a network namespace", errno) : try_pair(why);
    if (setns(home, CLONE_NEWNET) && result != ZOVN_VETH_UNKNOWN)
        result = untried(why, "return to the network namespace", errno);
    close(home);
    return result;
}
