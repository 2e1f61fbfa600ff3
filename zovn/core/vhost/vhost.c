/* Sockets of ports, and the callbacks of librte_vhost, which knows sessions by number and path. */
#include "vhost/vhost.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <rte_vhost.h>

#include "system/log.h"
#include "system/socket.h"
#include "vhost/features.h"
#include "vhost/record.h"
#include "vhost/session.h"
#include "vhost/waits.h"

enum { SET_PROTOCOL_FEATURES = 16, GET_QUEUE_NUM = 17, SEND_RARP = 19 };

struct zovn_vhost {
    struct zovn_session session;
    struct zovn_vhost *next;
};

/* librte_vhost's callbacks carry no context, so ports are found by their paths. */
static struct {
    pthread_mutex_t lock;
    struct zovn_vhost *first;
} ports = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *path_of(const struct zovn_vhost *vhost) {
    return vhost->session.line.options.path;
}

static struct zovn_session *session_of(int device) {
    char path[ZOVN_PATH_BYTES];
    if (rte_vhost_get_ifname(device, path, sizeof path) < 0)
        return NULL;
    pthread_mutex_lock(&ports.lock);
    struct zovn_vhost *vhost = ports.first;
    while (vhost && strcmp(path_of(vhost), path) != 0)
        vhost = vhost->next;
    pthread_mutex_unlock(&ports.lock);
    return vhost ? &vhost->session : NULL;
}

static void list(struct zovn_vhost *vhost) {
    pthread_mutex_lock(&ports.lock);
    vhost->next = ports.first;
    ports.first = vhost;
    pthread_mutex_unlock(&ports.lock);
}

static void unlist(struct zovn_vhost *vhost) {
    pthread_mutex_lock(&ports.lock);
    struct zovn_vhost **at = &ports.first;
    while (*at != vhost)
        at = &(*at)->next;
    *at = vhost->next;
    pthread_mutex_unlock(&ports.lock);
}

/* The session, if it is this device's: a second front end that was refused has none. */
static struct zovn_session *own_session(int device) {
    struct zovn_session *session = session_of(device);
    return session && session->device == device ? session : NULL;
}

/* A message begins so; what it says begins with the number of a ring if it is about one. */
struct message {
    uint32_t request, flags, size;
};

/* What a message says is not aligned. */
static void *says(struct message *message) {
    return message + 1;
}

/* librte_vhost would say 128, whatever the port has. */
static enum rte_vhost_msg_result answer_queues(const struct zovn_session *session,
                                               struct message *message) {
    const uint64_t queues = session->line.options.queues;
    message->size = sizeof queues;
    memcpy(says(message), &queues, sizeof queues);
    return RTE_VHOST_MSG_RESULT_REPLY;
}

static void pass_on_features(struct message *message) {
    uint64_t chosen;
    memcpy(&chosen, says(message), sizeof chosen);
    chosen = zovn_vhost_passed_on(chosen);
    memcpy(says(message), &chosen, sizeof chosen);
}

/* librte_vhost does not look at the length. */
static bool is_whole(const struct message *message) {
    return message->request != SEND_RARP || message->size == sizeof(uint64_t);
}

static enum rte_vhost_msg_result before(int device, void *bytes) {
    struct zovn_session *session = own_session(device);
    struct message *message = bytes;
    union zovn_says said;
    if (!session)
        return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
    memcpy(&said, says(message), sizeof said);
    if (!is_whole(message) || !zovn_session_before(session, message->request, &said))
        return RTE_VHOST_MSG_RESULT_ERR;
    if (message->request == GET_QUEUE_NUM)
        return answer_queues(session, message);
    if (message->request == SET_PROTOCOL_FEATURES)
        pass_on_features(message);
    return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

static enum rte_vhost_msg_result after(int device, void *message) {
    (void)message;
    struct zovn_session *session = own_session(device);
    if (session)
        zovn_session_after(session);
    return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

static int connected(int device) {
    static const struct rte_vhost_user_extern_ops AROUND = {before, after};
    struct zovn_session *session = session_of(device);
    if (!session)
        return -1;
    const char *name = session->line.options.name;
    if (!zovn_waits_bound(session->line.options.path))
        zovn_say("%s: a front end is refused: its connection is not found in /proc/self/fd", name);
    else if (zovn_session_connect(session, device))
        return rte_vhost_extern_callback_register(device, &AROUND, NULL);
    else
        zovn_say("%s: a second front end is refused: one is connected", name);
    return -1;
}

static void disconnected(int device) {
    struct zovn_session *session = own_session(device);
    if (session)
        zovn_session_disconnect(session);
}

static int begun(int device) {
    struct zovn_session *session = own_session(device);
    if (session)
        zovn_session_run(session);
    return session ? 0 : -1;
}

static void ended(int device) {
    struct zovn_session *session = own_session(device);
    if (session)
        zovn_session_stop(session);
}

static int enabled(int device, uint16_t ring, int enable) {
    struct zovn_session *session = own_session(device);
    if (session)
        zovn_session_enable(session, ring, enable);
    return 0;
}

static const struct rte_vhost_device_ops CALLBACKS = {
    .new_device = begun,
    .destroy_device = ended,
    .vring_state_changed = enabled,
    .new_connection = connected,
    .destroy_connection = disconnected,
};

static bool register_port(const struct zovn_port_options *options) {
    const char *path = options->path;
    uint64_t known = 0, features = zovn_vhost_features(options);
    return rte_vhost_driver_register(path, 0) == 0 &&
           rte_vhost_driver_get_features(path, &known) == 0 &&
           rte_vhost_driver_disable_features(path, known & ~features) == 0 &&
           rte_vhost_driver_set_protocol_features(path, zovn_vhost_protocol_features(options)) ==
               0 &&
           rte_vhost_driver_callback_register(path, &CALLBACKS) == 0;
}

/* The socket never has more permissions than it should: they come from the umask. */
static const char *listen_at(const struct zovn_port_options *options) {
    mode_t before = zovn_socket_mask(options->group);
    bool listens = rte_vhost_driver_start(options->path) == 0;
    umask(before);
    if (!listens)
        return "the socket cannot be made: does its folder exist, and may it be written?";
    return zovn_socket_give(options->path, options->group);
}

struct zovn_vhost *zovn_vhost_open(struct zovn_forwarder *forwarder,
                                   const struct zovn_port_options *options, const char **problem) {
    *problem = zovn_socket_clear(options->path);
    if (*problem)
        return NULL;
    struct zovn_vhost *vhost = calloc(1, sizeof *vhost);
    if (!vhost) {
        *problem = "there is no memory for it";
        return NULL;
    }
    zovn_session_init(&vhost->session, forwarder, options);
    list(vhost);
    *problem =
        register_port(options) ? listen_at(options) : "librte_vhost does not accept its socket";
    if (!*problem)
        return vhost;
    zovn_vhost_close(vhost);
    return NULL;
}

/* librte_vhost calls `ended` and `disconnected` for a front end that is connected. */
void zovn_vhost_close(struct zovn_vhost *vhost) {
    rte_vhost_driver_unregister(path_of(vhost));
    zovn_record_remove(path_of(vhost), ZOVN_MOST_PAIRS);
    unlist(vhost);
    free(vhost);
}

struct zovn_line *zovn_vhost_line(struct zovn_vhost *vhost) {
    return &vhost->session.line;
}
