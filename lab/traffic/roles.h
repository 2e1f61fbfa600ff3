/* The roles of the traffic program; each runs until its standard input ends. */
#ifndef LAB_TRAFFIC_ROLES_H
#define LAB_TRAFFIC_ROLES_H

#include "common.h"

/* Answer reads: each request of 4 bytes names a number of bytes, which is sent back. */
void serve_reads(const struct options *options);
/* Read blocks striped over the servers, the next when all have answered (section 2.1). */
void read_blocks(const struct options *options);
/* Send TCP streams as fast as they are taken. */
void send_stream(const struct options *options);
/* Take TCP connections and throw away what they carry; close those that the peer closes. */
void sink_streams(const struct options *options);
/* Send parallel sequences of consecutive short TCP flows (section 2.3). */
void send_short_flows(const struct options *options);
/* Send UDP messages, as fast as they are taken or at a rate. */
void send_messages(const struct options *options);
/* Count the UDP messages that arrive whole. */
void sink_messages(const struct options *options);
/* Send ICMP echo requests and time the answers. */
void ping(const struct options *options);
/* Stamp and count the IPv4 packets that an interface receives. */
void capture(const struct options *options);

#endif
