/* The roles of the traffic program; each runs until its standard input ends. */
#ifndef LAB_TRAFFIC_ROLES_H
#define LAB_TRAFFIC_ROLES_H

#include "common.h"

/* Answer reads: each request of 4 bytes is the number of bytes to send back. */
void serve_reads(const struct options *options);
/* Read blocks striped over the servers, each after all have answered (section 2.1). */
void read_blocks(const struct options *options);
/* Send TCP streams as fast as possible. */
void send_stream(const struct options *options);
/* Accept TCP connections and discard their data; close those that the peer closes. */
void sink_streams(const struct options *options);
/* Send parallel sequences of consecutive short TCP flows (section 2.3). */
void send_short_flows(const struct options *options);
/* Send UDP messages, as fast as possible or at a rate. */
void send_messages(const struct options *options);
/* Count complete UDP messages. */
void sink_messages(const struct options *options);
/* Send ICMP echo requests and time the answers. */
void ping(const struct options *options);
/* Timestamp and count the IPv4 packets that an interface receives. */
void capture(const struct options *options);
/* Pass frames between pairs of interfaces, late. */
void delay(const struct options *options);
/* Pass frames between two interfaces at a rate, late, and drop beyond a buffer; count PFC. */
void wire(const struct options *options);
/* Be a physical switch between interfaces: finite buffers, lossy or lossless by PFC. */
void star(const struct options *options);

#endif
