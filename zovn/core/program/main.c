/* The switch as a program: one thread for control, and those that forward.
 *
 * zovn-switch CONFIGURATION. Exit codes: 0 ended on request, 1 failed, 2 wrong usage or
 * configuration.
 * zovn-switch --release INTERFACE... undoes what a killed switch left. Exit codes: 0 done, 1 some
 * interface was refused. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>

#include "program/config.h"
#include "program/control.h"
#include "program/release.h"
#include "system/log.h"
#include "system/notify.h"
#include "vhost/library.h"

enum { DONE = 0, FAILED = 1, UNUSABLE = 2 };

static bool read_config(struct zovn_config *config, const char *path) {
    struct zovn_problem problem;
    FILE *file = fopen(path, "re");
    if (!file) {
        zovn_say("%s: %s", path, strerror(errno));
        return false;
    }
    bool good = zovn_config_read(config, file, &problem);
    fclose(file);
    if (!good)
        zovn_say("%s: %s", path, problem.text);
    return good;
}

/* Threads that are started later inherit the mask: signals come here alone. A terminal that goes takes
 * no guest's network away. */
static int catch_signals(void) {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    return signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool add_ports(struct zovn_ports *ports, struct zovn_config *config) {
    struct zovn_problem problem;
    for (uint32_t i = 0; i < config->port_count; i++) {
        if (!zovn_ports_add(ports, config->ports[i], &problem)) {
            zovn_say("%s", problem.text);
            return false;
        }
    }
    return true;
}

static uint32_t lossy_classes(const struct zovn_settings *settings) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < ZOVN_CLASSES; i++)
        count += settings->classes[i].limit_bytes > 0;
    return count;
}

static int serve(struct zovn_config *config, struct zovn_forwarder *forwarder, int signals) {
    static struct zovn_control control;
    struct zovn_ports ports = {.forwarder = forwarder,
                               .lossy = lossy_classes(&config->settings),
                               .addresses = config->settings.addresses};
    const char *problem =
        zovn_control_open(&control, config->control, config->control_group, &ports, signals);
    if (problem) {
        zovn_say("%s: %s", config->control, problem);
        return FAILED;
    }
    bool started = add_ports(&ports, config);
    if (started) {
        zovn_say("forwarding between %u ports", ports.count);
        zovn_notify("READY=1");
        zovn_control_run(&control);
    }
    zovn_notify("STOPPING=1");
    zovn_ports_remove_all(&ports);
    zovn_control_close(&control);
    return started ? DONE : FAILED;
}

static int run(struct zovn_config *config) {
    static struct zovn_forwarder forwarder;
    int signals = catch_signals();
    if (getrandom(&config->settings.seed, sizeof config->settings.seed, 0) < 0 || signals < 0) {
        zovn_say("%s", strerror(errno));
        return FAILED;
    }
    if (!zovn_vhost_library_start())
        return FAILED;
    const char *problem = zovn_forwarder_start(&forwarder, &config->settings);
    if (problem) {
        zovn_say("the forwarding threads do not start: %s", problem);
        return FAILED;
    }
    int code = serve(config, &forwarder, signals);
    zovn_forwarder_stop(&forwarder);
    zovn_vhost_library_end();
    return code;
}

int main(int count, char **arguments) {
    static struct zovn_config config;
    if (count > 2 && strcmp(arguments[1], "--release") == 0)
        return zovn_release(arguments + 2) ? DONE : FAILED;
    if (count != 2 || arguments[1][0] == '-') {
        fputs("usage: zovn-switch CONFIGURATION | --release INTERFACE...\n", stderr);
        return UNUSABLE;
    }
    return read_config(&config, arguments[1]) ? run(&config) : UNUSABLE;
}
