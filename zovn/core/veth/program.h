/* The XDP program at the host's end: it redirects what the container sends to the port's socket.
 *
 * The first frame goes another way: in a datagram to a UDP socket of the port, which learns
 * from it which NAPI to poll. AF_XDP sockets do not learn that of a veth, and nothing else sets it. */
#ifndef ZOVN_VETH_PROGRAM_H
#define ZOVN_VETH_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

enum { ZOVN_LEARN_PORT = 31343, ZOVN_LEARN_HEADERS = 14 + 20 + 8 };

struct zovn_program {
    int code, sockets, state, link; /* descriptors; -1 without */
    struct zovn_program_state *shared;
};

void zovn_program_init(struct zovn_program *program);

/* Return 0 or a negative errno. */
int zovn_program_load(struct zovn_program *program);
void zovn_program_close(struct zovn_program *program);

int zovn_program_redirect(const struct zovn_program *program, int socket);

/* The kernel detaches it when this process ends, however it ends. -EBUSY: there is another. */
int zovn_program_attach(struct zovn_program *program, uint32_t interface);

/* Let the next frame be the first, and return whether it has come. */
void zovn_program_expect(const struct zovn_program *program);
bool zovn_program_has_first(const struct zovn_program *program);

#endif
