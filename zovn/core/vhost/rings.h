/* A device's rings and memory, as librte_vhost knows them. */
#ifndef ZOVN_VHOST_RINGS_H
#define ZOVN_VHOST_RINGS_H

#include "ports/ring_port.h"
#include "vhost/session.h"

/* Fill in the memory of a session and the rings of a port; return NULL, or the problem. */
const char *zovn_vhost_rings(struct zovn_session *session, struct zovn_ring_settings *settings);

/* Copy a ring's files; -1 for those that do not exist. */
struct zovn_vhost_files zovn_vhost_files(const struct zovn_session *session, uint32_t ring);

#endif
