// The coordinator's messages to and from the controllers.
#ifndef XCO_COORDINATOR_MESSAGES_H
#define XCO_COORDINATOR_MESSAGES_H

#include <stdint.h>

#include "coordinator/state.h"

// Opens the socket; 0 or a negative errno.
int xco_messages_open(struct xco_coordinator *c);

// Opens a socket for datagrams of coordinators, past the other queues; a negative errno.
int xco_messages_socket(bool *four);

// Sends a message with a key to one place.
bool xco_messages_send(struct xco_coordinator *c, int socket, const struct sockaddr_in6 *to,
                       struct xco_message *message, const uint8_t key[XCO_KEY_BYTES]);

// Logs the first message of another version.
void xco_messages_note_version(struct xco_coordinator *c, uint8_t version);

// Receives all messages that have arrived.
void xco_messages_take(struct xco_coordinator *c);

// Sends a message to every controller: report, request to join, local addresses, leave.
void xco_messages_report(struct xco_coordinator *c);
// Sends the counters of the port that leads to this host, if they are due.
void xco_messages_port(struct xco_coordinator *c, int64_t now_ns);
void xco_messages_hello(struct xco_coordinator *c);
void xco_messages_places(struct xco_coordinator *c);
void xco_messages_leave(struct xco_coordinator *c);

// The persisted highest epoch, or 0.
uint64_t xco_messages_epoch(const struct xco_coordinator *c);

// An epoch has become durable: obeys the messages that waited for it.
void xco_messages_kept(struct xco_coordinator *c);

#endif
