/* Opens and closes what a wire port needs; refuses a buffer that PFC cannot protect. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "wire/headroom.h"
#include "wire/wire_parts.h"
#include "wire/wire_port.h"

enum { ETHERNET_BYTES = 14, TAG_BYTES = 4, ALIGN = 64 };

static bool refuse(char *problem, const char *what) {
    snprintf(problem, ZOVN_WIRE_PROBLEM, "%s", what);
    return false;
}

static uint64_t most_of(const struct zovn_wire *wire) {
    return zovn_line_bytes(wire->link.mtu + ETHERNET_BYTES + TAG_BYTES);
}

/* The peer takes care of its ring as this wire does. With 0 it holds nothing back that would wait. */
static bool bound(struct zovn_wire *wire, const struct zovn_wire_settings *settings,
                  char *problem) {
    if (!settings->ring_bytes || !settings->pfc)
        return true;
    wire->ring_bytes = zovn_link_bound(&wire->link, settings->ring_bytes, most_of(wire));
    if (!wire->ring_bytes)
        return refuse(problem, "ring: the send buffer of the packet socket cannot be set");
    if (wire->ring_bytes < settings->ring_bytes)
        wire->ring_bytes = settings->ring_bytes;
    return true;
}

/* What the peer's line sends early, by its tolerance, a pause does not call back. */
static struct zovn_headroom headroom_of(const struct zovn_wire *wire,
                                        const struct zovn_wire_settings *settings) {
    uint64_t early = settings->rate_bps / 8 * ZOVN_TOLERANCE_NS / 1000000000;
    return (struct zovn_headroom){
        .rate_bps = settings->rate_bps,
        .delay_ns = settings->delay_ns,
        .response_ns = settings->response_ns,
        .most_bytes = most_of(wire),
        .ring_bytes = wire->ring_bytes + early,
    };
}

static bool divide(struct zovn_wire *wire, const struct zovn_wire_settings *settings,
                   char *problem) {
    struct zovn_headroom headroom = headroom_of(wire, settings);
    wire->sender.classes = settings->pfc;
    wire->sender.rate_bps = wire->receiver.rate_bps = settings->rate_bps;
    if (!settings->pfc || zovn_headroom_divide(&headroom, settings->buffer_bytes,
                                               &wire->sender.xoff_bytes, &wire->sender.xon_bytes))
        return true;
    snprintf(problem, ZOVN_WIRE_PROBLEM,
             "buffer: %" PRIu64 " bytes are too few at this rate and delay; at least %" PRIu64
             " are needed, and at most %d are possible",
             settings->buffer_bytes, zovn_headroom_least(&headroom), ZOVN_MOST_BUFFER);
    return false;
}

static bool check(const struct zovn_wire_settings *settings, char *problem) {
    if (settings->rate_bps < 1000000 || settings->rate_bps > UINT64_C(1000000000000))
        return refuse(problem, "line_rate: from 1 Mb/s to 1 Tb/s");
    if (settings->delay_ns > 1000000000 || settings->response_ns > 1000000000)
        return refuse(problem, "delay, response: at most 1 s");
    if (settings->vni > ZOVN_VXLAN_MOST_VNI)
        return refuse(problem, "vni: from 0 to 16777215");
    if (settings->buffer_bytes < 16384 || settings->buffer_bytes > ZOVN_MOST_BUFFER)
        return refuse(problem, "buffer: from 16384 to 344064 bytes");
    if (settings->class >= ZOVN_PFC_CLASSES)
        return refuse(problem, "class: there are classes 0 to 7");
    return true;
}

/* The buffers have room for the MTU that the interface had when it was opened. */
void zovn_wire_limit(struct zovn_wire *wire, uint32_t mtu) {
    uint32_t usable = mtu < wire->link.mtu ? mtu : wire->link.mtu;
    wire->most = usable > ZOVN_VXLAN_PACKET ? usable - ZOVN_VXLAN_PACKET : 0;
}

static bool open_buffers(struct zovn_wire *wire, const struct zovn_wire_settings *settings,
                         char *problem) {
    uint32_t frame = wire->link.mtu + ETHERNET_BYTES + TAG_BYTES;
    uint32_t slot = (frame + ZOVN_LINK_SPARE + ALIGN) / ALIGN * ALIGN;
    if (wire->link.mtu < ZOVN_VXLAN_PACKET + 64)
        return refuse(problem, "the MTU of the interface is too small");
    zovn_wire_limit(wire, wire->link.mtu);
    return (zovn_inbound_init(&wire->inbound, settings->buffer_bytes, slot) &&
            zovn_outbound_init(&wire->outbound, settings->rate_bps, slot)) ||
           refuse(problem, "no memory for the buffers");
}

/* The clock and the socket end a sleep through one file, since that is never read. */
static bool open_wake(struct zovn_wire *wire, char *problem) {
    struct epoll_event readable = {.events = EPOLLIN};
    wire->clock = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    wire->wake = epoll_create1(EPOLL_CLOEXEC);
    return (wire->clock >= 0 && wire->wake >= 0 &&
            !epoll_ctl(wire->wake, EPOLL_CTL_ADD, wire->clock, &readable) &&
            !epoll_ctl(wire->wake, EPOLL_CTL_ADD, wire->link.file, &readable)) ||
           refuse(problem, "cannot open its files");
}

static bool locate(struct zovn_wire *wire, const char *path, char *problem) {
    char wrong[ZOVN_LOCATIONS_PROBLEM];
    if (zovn_wire_port_locate(&wire->port, path, wrong))
        return true;
    snprintf(problem, ZOVN_WIRE_PROBLEM, "locations: %.100s: %.120s", path, wrong);
    return false;
}

static bool open_all(struct zovn_wire *wire, const struct zovn_wire_settings *settings,
                     char *problem) {
    return check(settings, problem) &&
           zovn_link_open(&wire->link, settings->interface, settings->local, problem) &&
           bound(wire, settings, problem) && divide(wire, settings, problem) &&
           open_buffers(wire, settings, problem) && open_wake(wire, problem) &&
           locate(wire, settings->locations, problem);
}

struct zovn_wire *zovn_wire_open(const struct zovn_wire_settings *settings, char *problem) {
    struct zovn_wire *wire = calloc(1, sizeof *wire);
    if (!wire) {
        refuse(problem, "no memory for the port");
        return NULL;
    }
    wire->wake = wire->clock = -1;
    wire->link.file = wire->link.control = wire->link.reserved = -1;
    wire->vni = settings->vni;
    wire->class = settings->class;
    wire->seen_ns = zovn_wire_now();
    wire->armed_ns = UINT64_MAX;
    if (open_all(wire, settings, problem))
        return wire;
    zovn_wire_close(wire);
    return NULL;
}

void zovn_wire_close(struct zovn_wire *wire) {
    zovn_link_close(&wire->link);
    zovn_inbound_free(&wire->inbound);
    zovn_outbound_free(&wire->outbound);
    zovn_locations_free(wire->locations);
    if (wire->clock >= 0)
        close(wire->clock);
    if (wire->wake >= 0)
        close(wire->wake);
    free(wire);
}
