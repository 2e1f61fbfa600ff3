/* Ports to guests by vhost-user: a socket for each, where one front end at a time may connect. */
#ifndef ZOVN_VHOST_VHOST_H
#define ZOVN_VHOST_VHOST_H

#include "forward/line.h"

struct zovn_vhost;

/* Make the socket and listen; return NULL with the problem. */
struct zovn_vhost *zovn_vhost_open(struct zovn_forwarder *forwarder,
                                   const struct zovn_port_options *options, const char **problem);

/* Deliver what was taken, within limits; disconnect the front end, remove the socket, and free. */
void zovn_vhost_close(struct zovn_vhost *vhost);

struct zovn_line *zovn_vhost_line(struct zovn_vhost *vhost);

#endif
