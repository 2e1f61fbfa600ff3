/* The UDP socket through which the port runs the container's NAPI: a read that finds nothing polls. */
#include "veth/poller.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "veth/program.h"

/* Of linux/socket.h since Linux 5.11; libc may be older. */
enum { PREFER_BUSY_POLL = 69, BUSY_POLL_BUDGET = 70 };
enum { BUSY_POLL_US = 20 }; /* any but 0: a read that does not wait polls once */

static bool set(int socket, int option, int value) {
    return !setsockopt(socket, SOL_SOCKET, option, &value, sizeof value);
}

int zovn_poller_open(uint32_t interface) {
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(ZOVN_LEARN_PORT)};
    int poller = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (poller < 0)
        return -errno;
    if (set(poller, SO_REUSEADDR, 1) && set(poller, SO_BINDTOIFINDEX, (int)interface) &&
        !bind(poller, (struct sockaddr *)&any, sizeof any) && set(poller, PREFER_BUSY_POLL, 1) &&
        set(poller, SO_BUSY_POLL, BUSY_POLL_US) && set(poller, BUSY_POLL_BUDGET, ZOVN_BUDGET))
        return poller;
    int error = -errno;
    close(poller);
    return error;
}

uint32_t zovn_poller_first(int poller, uint8_t *to, size_t room) {
    ssize_t length = recv(poller, to, room, MSG_DONTWAIT | MSG_TRUNC);
    if (length > (ssize_t)room)
        return 1; /* cut off: no frame is that short, so it counts as malformed */
    return length > 0 ? (uint32_t)length : 0;
}

/* There is nothing to read: after the first frame the program passes none. */
void zovn_poller_run(int poller) {
    uint8_t nothing[1];
    recv(poller, nothing, sizeof nothing, MSG_DONTWAIT);
}
