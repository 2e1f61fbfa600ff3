// The local coordinator of a host: holds and releases its V2V flows as the controller directs.
//
//   xco-coordinator CONFIGURATION          see coordinator/config.h
//   xco-coordinator --release INTERFACE    removes the queues of a killed coordinator
//   xco-coordinator --try CLASSIFIER       loads the BPF programs of a file, and prints any error
//   xco-coordinator --try-edt CLASSIFIER   the same for its program of departure times
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coordinator/guard.h"
#include "coordinator/loss.h"
#include "coordinator/messages.h"
#include "coordinator/state.h"
#include "common/exit.h"
#include "common/log.h"

#define RUN "/run/xco"
#define LOCKS RUN "/locks"
#define DRAIN_NS 100000000
#define DRAIN_BPS 1000000000 // without a configuration the link's rate is unknown

static bool read_config(struct xco_coordinator_config *config, const char *path) {
    char problem[256];
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        xco_say("%s: %s", path, strerror(errno));
        return false;
    }
    bool good = xco_config_read(config, file, problem, sizeof problem);
    fclose(file);
    if (!good) {
        xco_say("%s: %s", path, problem);
    }
    return good;
}

// Holds a file, exclusively until exit: one per interface and network namespace. Only root can
// reach its directory: any process could take a name in the namespace itself.
static int hold(const char *interface) {
    char path[XCO_PATH_BYTES];
    struct stat namespace;
    if ((mkdir(RUN, 0755) < 0 && errno != EEXIST) || (mkdir(LOCKS, 0700) < 0 && errno != EEXIST) ||
        stat("/proc/self/ns/net", &namespace) < 0) {
        return -errno;
    }
    snprintf(path, sizeof path, LOCKS "/%s-%llu", interface, (unsigned long long)namespace.st_ino);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return file < 0 || flock(file, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

static int start(struct xco_coordinator *c) {
    if (xco_wire_init() < 0) {
        xco_say("libsodium cannot be had");
        return XCO_EXIT_FAILED;
    }
    const char *problem = xco_host_keys_read(c->config.key_file, c->config.core.host, &c->keys);
    if (problem == NULL && c->config.core.hygenicc) {
        problem = xco_peer_keys_read(c->config.key_file, c->config.hosts, &c->hygenicc.keys);
    }
    if (problem != NULL) {
        xco_say("%s: %s", c->config.key_file, problem);
        return XCO_EXIT_CONFIG;
    }
    int error = hold(c->config.interface);
    if (error == -EWOULDBLOCK) {
        xco_say("%s: a coordinator is running: stop it first", c->config.interface);
        return XCO_EXIT_BUSY;
    }
    if (error != 0) {
        xco_say("%s: its lock cannot be taken: %s", LOCKS, strerror(-error));
        return XCO_EXIT_FAILED;
    }
    c->origin.epoch = xco_messages_epoch(c);
    c->flows.large_bytes = (uint32_t)c->config.flow_bytes;
    c->flows.window_ns = (int64_t)c->config.flow_window_ns;
    c->flows.idle_ns = (int64_t)c->config.flow_idle_ns;
    return xco_guard_run(c);
}

static void ignore(void *context, const struct xco_notice *notice) {
    (void)context;
    (void)notice;
}

static int try_classifier(const char *file, bool paced) {
    struct xco_classifier classifier;
    const struct xco_classify_terms terms = {.hosts = 1, .paced = paced, .admission = 1};
    int error = xco_classifier_open(&classifier, file, &terms, ignore, NULL);
    if (error == 0) {
        xco_classifier_close(&classifier);
        return XCO_EXIT_OK;
    }
    xco_say("%s: %s %s", file, strerror(-error), xco_classifier_problem());
    return error == -EPERM ? XCO_EXIT_DENIED : XCO_EXIT_UNSUPPORTED;
}

static int release(const char *interface) {
    uint64_t lost;
    int error = xco_gate_release(interface, DRAIN_BPS, DRAIN_NS, &lost);
    xco_queues_say_lost(interface, lost);
    if (error != 0) {
        xco_say("%s: %s", interface, strerror(-error));
    }
    return error == 0 ? XCO_EXIT_OK : error == -EPERM ? XCO_EXIT_DENIED : XCO_EXIT_FAILED;
}

int main(int count, char **arguments) {
    static struct xco_coordinator coordinator; // too large for the stack
    xco_log_name("xco-coordinator");
    signal(SIGPIPE, SIG_IGN);                  // a closed log pipe must not end the program
    if (count == 3 && strcmp(arguments[1], "--release") == 0) {
        return release(arguments[2]);
    }
    if (count == 3 && strcmp(arguments[1], "--try") == 0) {
        return try_classifier(arguments[2], false);
    }
    if (count == 3 && strcmp(arguments[1], "--try-edt") == 0) {
        return try_classifier(arguments[2], true);
    }
    if (count != 2) {
        fputs("usage: xco-coordinator CONFIGURATION | --release INTERFACE | --try CLASSIFIER | "
              "--try-edt CLASSIFIER\n",
              stderr);
        return XCO_EXIT_CONFIG;
    }
    if (!read_config(&coordinator.config, arguments[1])) {
        return XCO_EXIT_CONFIG;
    }
    int code = start(&coordinator);
    xco_config_free(&coordinator.config);
    return code;
}
