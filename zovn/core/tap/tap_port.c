/* A port to the kernel's end of a TAP interface: a system call for each frame. */
#include "tap/tap_port.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/if.h>
#include <linux/if_tun.h>

#include "system/dropped.h"

enum { HEADS = 256, MOST_FRAME = 9216 + 14 + 4 };
enum { READ_BYTES = MOST_FRAME + 2 }; /* the kernel cuts a longer frame, and does not say so */

struct tap {
    struct zovn_port port;
    int file;
    uint64_t dropped_before; /* by the kernel, at the interface */
    char interface[IFNAMSIZ];
    uint32_t unused_count;
    uint16_t unused[HEADS]; /* a stack */
    uint32_t lengths[HEADS];
    uint8_t bytes[HEADS][READ_BYTES];
};

static struct tap *of(struct zovn_port *port) {
    return (struct tap *)port;
}

static bool is_gone(int error) {
    return error == EBADFD || error == ENODEV;
}

/* Other errors pass: an interface that is down has nothing to read. */
static uint32_t read_frame(struct tap *tap, uint16_t head) {
    ssize_t length = read(tap->file, tap->bytes[head], READ_BYTES);
    if (length < 0 && is_gone(errno))
        tap->port.fault = ZOVN_PEER_GONE;
    return length > 0 ? (uint32_t)length : 0;
}

static uint32_t peek(struct zovn_port *port, uint16_t *heads, uint32_t most) {
    struct tap *tap = of(port);
    uint32_t count = 0;
    while (count < most && tap->unused_count) {
        uint16_t head = tap->unused[tap->unused_count - 1];
        tap->lengths[head] = read_frame(tap, head);
        if (!tap->lengths[head])
            break;
        tap->unused_count--;
        heads[count++] = head;
    }
    return count;
}

static enum zovn_frame_result frame(struct zovn_port *port, uint16_t head,
                                    struct zovn_frame *frame) {
    struct tap *tap = of(port);
    if (tap->lengths[head] > MOST_FRAME)
        return ZOVN_FRAME_TOO_LONG;
    zovn_frame_begin(frame);
    zovn_frame_append(frame, tap->bytes[head], tap->lengths[head]);
    return tap->lengths[head] < ZOVN_LEAST_BYTES ? ZOVN_FRAME_MALFORMED : ZOVN_FRAME_OK;
}

static enum zovn_put_result put(struct zovn_port *port, struct zovn_frame *frame) {
    struct iovec parts[2 + ZOVN_MOST_SEGMENTS];
    uint32_t count = 0;
    if (frame->length > MOST_FRAME)
        return ZOVN_PUT_TOO_LONG;
    for (uint32_t i = frame->first; i < frame->end; i++)
        parts[count++] = (struct iovec){frame->segments[i].bytes, frame->segments[i].length};
    if (writev(of(port)->file, parts, (int)count) >= 0)
        return ZOVN_PUT_DONE;
    if (is_gone(errno))
        port->fault = ZOVN_PEER_GONE;
    return ZOVN_PUT_REFUSED;
}

static bool room(struct zovn_port *port) {
    (void)port;
    return true;
}

static void complete(struct zovn_port *port, uint16_t head) {
    struct tap *tap = of(port);
    tap->unused[tap->unused_count++] = head;
}

static void publish(struct zovn_port *port) {
    (void)port;
}

static void free_port(struct zovn_port *port) {
    close(of(port)->file);
    free(port);
}

static const struct zovn_port_calls CALLS = {peek, frame, put, room, complete, publish, free_port};

/* Return a file, or a negative errno. */
static int open_interface(const char *interface) {
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", interface);
    int file = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 || !ioctl(file, TUNSETIFF, &request))
        return file < 0 ? -errno : file;
    int error = -errno;
    close(file);
    return error;
}

static const char *words_for(int error) {
    if (error == -EBUSY)
        return "another program uses it";
    if (error == -EINVAL)
        return "it is no TAP interface";
    return strerror(-error);
}

struct zovn_port *zovn_tap_port_new(const char *interface, char *problem) {
    int file = open_interface(interface);
    struct tap *tap = file < 0 ? NULL : calloc(1, sizeof *tap);
    if (!tap) {
        snprintf(problem, ZOVN_TAP_PROBLEM, "%s", file < 0 ? words_for(file) : "no memory for it");
        if (file >= 0)
            close(file);
        return NULL;
    }
    tap->port = (struct zovn_port){.calls = &CALLS, .heads = HEADS, .costly = true};
    tap->file = file;
    snprintf(tap->interface, sizeof tap->interface, "%s", interface);
    tap->dropped_before = zovn_dropped(interface);
    while (tap->unused_count < HEADS)
        complete(&tap->port, (uint16_t)tap->unused_count);
    return &tap->port;
}

uint64_t zovn_tap_port_lost(const struct zovn_port *port) {
    const struct tap *tap = (const struct tap *)port;
    uint64_t dropped = zovn_dropped(tap->interface);
    return dropped > tap->dropped_before ? dropped - tap->dropped_before : 0;
}
