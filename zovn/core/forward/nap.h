/* Sleep of the forwarding thread, without lost wake-ups. */
#ifndef ZOVN_FORWARD_NAP_H
#define ZOVN_FORWARD_NAP_H

#include "forward/forwarder.h"

/* Sleep until a peer or a sender of a message does something, for 100 ms at most. */
void zovn_nap(struct zovn_forwarder *forwarder);

/* Watch the files of an attachment, or no longer. */
void zovn_nap_watch(const struct zovn_forwarder *forwarder, int file);
void zovn_nap_unwatch(const struct zovn_forwarder *forwarder, int file);

#endif
