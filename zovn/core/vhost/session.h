/* A front end's session with a port: when its rings may be used.
 *
 * All calls come from librte_vhost, one at a time. Rings are attached while the device runs and those
 * of the first pair are enabled, and with them all pairs that are; they are detached before their memory or addresses change, and the call returns when
 * the forwarding thread no longer uses them. Files that only notify are replaced without that. */
#ifndef ZOVN_VHOST_SESSION_H
#define ZOVN_VHOST_SESSION_H

#include "vhost/guest.h"

/* What SET_VRING_ADDR says of a ring. */
struct zovn_place {
    uint32_t ring, flags;
    uint64_t descriptors, used, avail, log;
};

/* What GET_INFLIGHT_FD and SET_INFLIGHT_FD say of records; the second one also says where in its file
 * they are. */
struct zovn_records {
    uint64_t bytes, offset;
    uint16_t rings, entries;
};

/* What a message says, which depends on its request. */
union zovn_says {
    struct zovn_place place; /* its ring is that of any message about one */
    struct zovn_records records;
    uint8_t ethernet[8]; /* of SEND_RARP: 6 bytes */
};

struct zovn_session {
    struct zovn_line line;
    int device; /* librte_vhost's number; -1: no front end is connected */
    bool running;
    bool enabled[ZOVN_MOST_RINGS];
    bool mapped;      /* the front end's last table of memory was accepted */
    uint32_t message; /* that is handled now; 0: none */
    struct zovn_recorded said; /* by the message, if it is SET_INFLIGHT_FD */
    struct zovn_place places[ZOVN_MOST_RINGS];
    struct zovn_guest guest;
};

void zovn_session_init(struct zovn_session *session, struct zovn_forwarder *forwarder,
                       const struct zovn_port_options *options);

/* Return false if another front end is connected. */
bool zovn_session_connect(struct zovn_session *session, int device);
void zovn_session_disconnect(struct zovn_session *session);

void zovn_session_run(struct zovn_session *session);
void zovn_session_stop(struct zovn_session *session);
void zovn_session_enable(struct zovn_session *session, uint32_t ring, bool enable);

/* Around each message of the front end. Return false if it is to be refused: librte_vhost must not see
 * it, and nothing has changed. */
bool zovn_session_before(struct zovn_session *session, uint32_t message,
                         const union zovn_says *says);
void zovn_session_after(struct zovn_session *session);

#endif
