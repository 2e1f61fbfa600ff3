// Receives and sends datagrams in batches, and remembers each host's address.
#include "controller/datagrams.h"

#include <errno.h>
#include <string.h>

#include <time.h>

#include "controller/engine/engine.h"
#include "controller/engine/view.h"
#include "controller/shell.h"

#define BATCH 32
#define BATCHES 4 // per turn: a flood delays no signal, no command and no statistics
#define CONTROL_BYTES 64        // a timestamp, and what else the kernel may add
#define LONGEST_WAIT_NS 100000000 // older timestamps mean a step of the wall clock

// A batch of datagrams with their addresses.
struct batch {
    struct mmsghdr messages[BATCH];
    struct iovec vectors[BATCH];
    struct xco_socket_address addresses[BATCH];
    _Alignas(8) uint8_t control[BATCH][CONTROL_BYTES];
    uint8_t bytes[BATCH][XCO_DATAGRAM_MAX + 1]; // one more: makes oversized datagrams detectable
};

static void prepare(struct batch *batch) {
    for (size_t i = 0; i < BATCH; i++) {
        batch->vectors[i] = (struct iovec){batch->bytes[i], sizeof batch->bytes[i]};
        batch->messages[i].msg_hdr = (struct msghdr){
            .msg_name = &batch->addresses[i].socket,
            .msg_namelen = sizeof batch->addresses[i].socket,
            .msg_iov = &batch->vectors[i],
            .msg_iovlen = 1,
        };
    }
}

// Two clocks, read one directly after the other.
struct clocks {
    int64_t wall_ns;
    uint64_t now_ns;
};

// Read the wall clock first: a delay in between makes messages seem to arrive later than they did.
// That only lengthens their way; an arrival too early would make it look the shortest.
static struct clocks read_clocks(void) {
    struct timespec wall;
    (void)clock_gettime(CLOCK_REALTIME, &wall); // cannot fail for this clock
    return (struct clocks){(int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec, xco_shell_now()};
}

// Returns when the kernel received a datagram, by our clock; now, without a timestamp.
static uint64_t arrival_ns(struct msghdr *message, const struct clocks *clocks) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec stamp;
            memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
            const int64_t ago =
                clocks->wall_ns - ((int64_t)stamp.tv_sec * 1000000000 + stamp.tv_nsec);
            return ago >= 0 && ago < LONGEST_WAIT_NS ? clocks->now_ns - (uint64_t)ago
                                                     : clocks->now_ns;
        }
    }
    return clocks->now_ns;
}

static void receive_one(struct xco_shell *shell, const struct clocks *clocks, struct batch *batch,
                        size_t i) {
    uint16_t host;
    const uint64_t arrived_ns = arrival_ns(&batch->messages[i].msg_hdr, clocks);
    const enum xco_receive_result verdict =
        xco_node_receive(&shell->node, clocks->now_ns, arrived_ns, batch->bytes[i],
                         batch->messages[i].msg_len, &host);
    if (verdict == XCO_DROPPED) {
        return;
    }
    batch->addresses[i].length = batch->messages[i].msg_hdr.msg_namelen;
    *xco_shell_address(shell, host) = batch->addresses[i];
}

// Does the work that fell due while messages were read.
static void keep_time(struct xco_shell *shell, struct clocks *clocks) {
    if (xco_shell_now() >= xco_control_deadline(shell->node.core)) {
        *clocks = read_clocks();
        xco_control_advance(shell->node.core, clocks->now_ns);
        xco_shell_send(shell, xco_shell_now());
    }
}

// Receives a batch; returns whether more may wait.
static bool receive_batch(struct xco_shell *shell) {
    struct batch batch;
    prepare(&batch);
    for (size_t i = 0; i < BATCH; i++) {
        batch.messages[i].msg_hdr.msg_control = batch.control[i];
        batch.messages[i].msg_hdr.msg_controllen = sizeof batch.control[i];
    }
    const int count = recvmmsg(shell->udp, batch.messages, BATCH, MSG_DONTWAIT, NULL);
    struct clocks clocks = read_clocks(); // after the arrival of all of them
    for (int i = 0; i < count; i++) {
        receive_one(shell, &clocks, &batch, (size_t)i);
        keep_time(shell, &clocks);
    }
    xco_control_advance(shell->node.core, clocks.now_ns);
    xco_shell_send(shell, xco_shell_now());
    return count == BATCH;
}

void xco_shell_receive(struct xco_shell *shell) {
    for (int batches = 0; batches < BATCHES && receive_batch(shell); batches++) {
    }
}

// Fills a batch with messages due to hosts with a known address.
static unsigned collect(struct xco_shell *shell, uint64_t now_ns, struct batch *batch) {
    unsigned count = 0;
    while (count < BATCH) {
        uint16_t host;
        const size_t length = xco_node_take(&shell->node, now_ns, batch->bytes[count], &host);
        if (length == 0) {
            break;
        }
        const struct xco_socket_address *address = xco_shell_address(shell, host);
        if (address->length == 0) {
            xco_control_counters(shell->node.core)->no_address++;
            continue;
        }
        batch->addresses[count] = *address;
        batch->vectors[count].iov_len = length;
        batch->messages[count].msg_hdr.msg_namelen = address->length;
        count++;
    }
    return count;
}

// Sends a batch. Counts and drops what cannot be sent: the next directive repeats it.
static void send_batch(struct xco_shell *shell, struct batch *batch, unsigned count) {
    unsigned sent = 0;
    while (sent < count) {
        const int done = sendmmsg(shell->udp, batch->messages + sent, count - sent, MSG_DONTWAIT);
        if (done > 0) {
            sent += (unsigned)done;
        } else if (errno != EINTR) {
            xco_control_counters(shell->node.core)->send_errors++;
            sent++;
        }
    }
}

void xco_shell_send(struct xco_shell *shell, uint64_t now_ns) {
    struct batch batch;
    unsigned count;
    do {
        prepare(&batch);
        count = collect(shell, now_ns, &batch);
        send_batch(shell, &batch, count);
    } while (count == BATCH);
}
