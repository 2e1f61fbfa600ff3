// The coordinator's loop: waits, opens and closes gates in time, and receives messages; part of its
// shell.
#include "coordinator/loop.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <linux/capability.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "coordinator/background.h"
#include "coordinator/bridge.h"
#include "coordinator/engine/decide.h"
#include "coordinator/engine/engine.h"
#include "coordinator/hygenicc.h"
#include "coordinator/loss.h"
#include "coordinator/map.h"
#include "coordinator/marks.h"
#include "coordinator/messages.h"
#include "coordinator/newcomers.h"
#include "coordinator/places.h"
#include "coordinator/queues.h"
#include "coordinator/recall.h"
#include "coordinator/stations.h"
#include "coordinator/statistics.h"
#include "coordinator/vms.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/privileges.h"

#define ABSENT_NS 1000000 // between turns while the interface is missing

// Event sources of the loop.
struct waits {
    int epoll, timer, signals, parent;
};

static void watch_descriptor(int epoll, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) < 0) {
        xco_say("epoll: %s", strerror(errno));
    }
}

static int open_links(void) {
    int links = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    struct sockaddr_nl group = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    if (links >= 0 && bind(links, (struct sockaddr *)&group, sizeof group) < 0) {
        close(links);
        return -1;
    }
    return links;
}

static bool open_waits(struct xco_coordinator *c, struct waits *waits, int parent) {
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    sigprocmask(SIG_BLOCK, &stops, NULL);
    c->links = open_links();
    *waits = (struct waits){
        .epoll = epoll_create1(EPOLL_CLOEXEC),
        .timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
        .signals = signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK),
        .parent = parent,
    };
    if (waits->epoll < 0 || waits->timer < 0 || waits->signals < 0 || c->links < 0) {
        return false;
    }
    const int descriptors[] = {waits->timer, waits->signals, parent,
                               c->links,     c->messages,    c->store.tells};
    for (size_t i = 0; i < sizeof descriptors / sizeof descriptors[0]; i++) {
        watch_descriptor(waits->epoll, descriptors[i]);
    }
    if (c->hygenicc.socket >= 0) {
        watch_descriptor(waits->epoll, c->hygenicc.socket);
    }
    if (c->places.stand) {
        watch_descriptor(waits->epoll, xco_classifier_descriptor(&c->places.classifier));
    }
    return true;
}

// Takes a real-time priority and locks memory, against delays by ordinary scheduling.
static void become_punctual(const struct xco_coordinator *c) {
    struct sched_param priority = {.sched_priority = (int)c->config.priority};
    if (c->config.priority > 0 && sched_setscheduler(0, SCHED_FIFO, &priority) < 0) {
        xco_say("no real-time priority (%s): slices will be imprecise: give CAP_SYS_NICE",
                strerror(errno));
    }
    if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0) {
        xco_say("memory cannot be locked (%s): give CAP_IPC_LOCK", strerror(errno));
    }
}

static const char *fallback_words(const struct xco_coordinator *c) {
    return c->config.core.fallback_open ? "the line's rate"
           : c->config.core.hygenicc    ? "what other hosts offer (hygenicc), else at safe shares"
                                        : "safe shares";
}

// Decides, and carries out the commands, gates first.
static void act(struct xco_coordinator *c, int64_t now_ns) {
    struct xco_command commands[XCO_COMMANDS];
    size_t count = xco_core_decide(&c->core, now_ns, commands);
    xco_queues_set(c, commands, count);
    for (size_t i = 0; i < count; i++) {
        switch (commands[i].kind) {
        case XCO_SET_GATE:
            break;
        case XCO_SEND_REPORT:
            xco_messages_report(c);
            break;
        case XCO_SEND_HELLO:
            xco_messages_hello(c);
            break;
        case XCO_SAY_FALLBACK:
            xco_say("fell back: no directive for %.1f ms: gates stand open at %s",
                    (double)c->core.config.silence_ns / 1e6, fallback_words(c));
            break;
        case XCO_SAY_CONTROLLED:
            xco_say("under control: directives of epoch %llu", (unsigned long long)c->origin.epoch);
            break;
        }
    }
}

// Makes the tree again after its loss; reports each kind of obstacle once.
static void rebuild(struct xco_coordinator *c, int64_t now_ns) {
    int error = xco_queues_make(c, now_ns);
    if (error == 0) {
        c->counts.remakes++;
        c->bridge.look_ns = 0; // it may be another interface
        xco_say("%s: its queues are created again", c->config.interface);
    } else if (error != c->mend_error && error != -ENODEV) {
        xco_queues_explain(c, error);
    }
    c->mend_error = error;
}

static void look(struct xco_coordinator *c, int64_t now_ns) {
    if (c->places.stand) {
        xco_places_look(c, now_ns);
    } else {
        xco_queues_look(c, now_ns);
    }
}

static void sweep(struct xco_coordinator *c, int64_t now_ns) {
    if (c->places.stand) {
        xco_places_sweep(c, now_ns);
    } else {
        xco_newcomers_sweep(c, now_ns);
    }
}

// Does a piece of the background work that is due, unless a gate must be set soon.
static void work(struct xco_coordinator *c, int64_t now_ns) {
    if (xco_background_from(c, now_ns) > now_ns) {
        return;
    }
    if (now_ns >= c->publish_ns) {
        if (c->present && c->places.stand) {
            xco_places_verify(c);
        }
        xco_coordinator_publish(c, now_ns);
    } else if (c->places.stand && now_ns >= c->bridge.look_ns) {
        xco_bridge_work(c, now_ns);
    } else if (c->places.stand && now_ns >= c->stations.look_ns) {
        xco_stations_work(c, now_ns);
    } else if (c->places.stand && now_ns >= c->map.sweep_ns) {
        xco_map_sweep(c);
    } else if (c->present && now_ns >= c->vms.work_ns) {
        xco_vms_work(c, now_ns);
    } else if (c->present && now_ns >= c->scan_ns) {
        xco_newcomers_scan(c, now_ns);
    } else if (c->present && now_ns >= c->sweep_ns) {
        sweep(c, now_ns);
    }
}

static void turn(struct xco_coordinator *c) {
    if (xco_core_silent(&c->core, xco_now_ns())) {
        xco_messages_take(c); // messages that arrived while the machine was stopped end the silence
    }
    act(c, xco_now_ns());
    xco_messages_take(c);
    if (c->places.stand) {
        xco_places_take(c);
        if (xco_map_work(c, xco_now_ns())) {
            xco_messages_places(c);
        }
    }
    int64_t now_ns = xco_now_ns();
    if (c->present) {
        look(c, now_ns);
    }
    xco_hygenicc_work(c, xco_now_ns());
    act(c, xco_now_ns());
    xco_messages_port(c, xco_now_ns());
    if (!c->present && now_ns >= c->mend_ns) {
        rebuild(c, now_ns);
    }
    work(c, xco_now_ns());
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// Returns the latest time of the next turn.
static struct xco_alarm next_turn(const struct xco_coordinator *c, int64_t now_ns) {
    struct xco_alarm alarm = xco_core_alarm(&c->core, now_ns);
    int64_t chores = least(c->publish_ns, now_ns + (int64_t)c->config.hang_ns / 4);
    if (c->places.stand) {
        chores = least(chores, least(c->bridge.look_ns, c->map.sweep_ns));
        chores = least(chores, c->stations.look_ns);
    }
    if (c->present) {
        chores = least(chores, least(c->scan_ns, least(c->sweep_ns, c->vms.work_ns)));
        chores = least(chores, least(xco_marks_due(c), xco_hygenicc_due(c)));
        chores = chores < now_ns ? now_ns : chores;
        chores = xco_chores_from(chores, xco_core_moves(&c->core, now_ns));
    } else { // without queues there is nothing to look at
        chores = least(chores, now_ns + ABSENT_NS);
        alarm.at_ns = alarm.at_ns > chores ? alarm.at_ns : chores;
        alarm.precise = false;
    }
    return chores < alarm.at_ns ? (struct xco_alarm){chores, false} : alarm;
}

// Lets a descriptor wake the loop once: the next read takes everything that came until then.
static void arm(const struct waits *waits, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = descriptor};
    if (epoll_ctl(waits->epoll, EPOLL_CTL_MOD, descriptor, &event) < 0 &&
        epoll_ctl(waits->epoll, EPOLL_CTL_ADD, descriptor, &event) < 0) {
        xco_say("epoll: %s", strerror(errno));
    }
}

static void arm_idle(struct xco_coordinator *c, const struct waits *waits) {
    if (c->present && c->watch_idle) {
        c->watch_idle = false;
        arm(waits, c->watch);
    }
    if (c->bridge.idle) {
        c->bridge.idle = false;
        arm(waits, c->bridge.socket);
    }
}

static struct timespec timespec_of(int64_t ns) {
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

// Waits for the alarm or for events. Before a gate's time the loop wakes early, by the usual
// lateness of wake-ups. Returns the descriptor with an event, -1: the alarm.
static int await(struct xco_coordinator *c, const struct waits *waits, struct xco_alarm alarm) {
    int64_t most_ns = (int64_t)c->config.spin_ns;
    int64_t spin_ns = alarm.precise ? xco_spin_ns(&c->spin, most_ns) : 0;
    int64_t wake_ns = alarm.at_ns - spin_ns, now_ns = xco_now_ns();
    struct epoll_event event = {.data.fd = waits->timer};
    if (wake_ns > now_ns || !alarm.precise) { // even when late: to receive the stop signal
        struct itimerspec timer = {.it_value = timespec_of(wake_ns > 0 ? wake_ns : 1)};
        timerfd_settime(waits->timer, TFD_TIMER_ABSTIME, &timer, NULL);
        c->counts.wakes++;
        if (epoll_wait(waits->epoll, &event, 1, -1) == 1 && event.data.fd != waits->timer) {
            return event.data.fd;
        }
        if (wake_ns > now_ns) {
            xco_spin_learn(&c->spin, xco_now_ns() - wake_ns, most_ns);
        }
    }
    while (alarm.precise && (now_ns = xco_now_ns()) < alarm.at_ns) {
    }
    return -1;
}

static void note_lateness(struct xco_coordinator *c, struct xco_alarm alarm) {
    if (alarm.precise) {
        int64_t late = xco_now_ns() - alarm.at_ns;
        c->counts.gate_late_ns = late > 0 ? (uint64_t)late : 0;
        if (c->counts.gate_late_ns > c->counts.gate_late_max_ns) {
            c->counts.gate_late_max_ns = c->counts.gate_late_ns;
        }
    }
}

// An interface appeared, disappeared or changed.
static void take_links(struct xco_coordinator *c) {
    _Alignas(8) uint8_t told[8192];
    ssize_t length;
    while ((length = recv(c->links, told, sizeof told, MSG_TRUNC)) > 0 || errno == ENOBUFS) {
        if (length > 0 && (size_t)length <= sizeof told) {
            xco_vms_hear(c, told, (size_t)length);
        } else { // the kernel had no room for all events, or we had none for one
            xco_vms_scan(c);
        }
    }
    if (c->present && xco_gate_changed(&c->gate)) {
        xco_queues_lose(c, -ENODEV);
    }
    c->mend_ns = 0;
}

static void go_on(struct xco_coordinator *c, const struct waits *waits) {
    for (;;) {
        turn(c);
        __atomic_add_fetch(&c->shared->turns, 1, __ATOMIC_RELAXED);
        arm_idle(c, waits);
        struct xco_alarm alarm = next_turn(c, xco_now_ns());
        int news = await(c, waits, alarm);
        if (news == waits->signals || news == waits->parent) {
            return;
        }
        if (news == c->links) {
            take_links(c);
        } else if (news == c->store.tells) {
            xco_messages_kept(c);
        } else if (news < 0) {
            note_lateness(c, alarm);
        } else if (news == c->watch) {
            c->scan_ns = 0;
        } else if (news == c->bridge.socket) {
            c->bridge.look_ns = 0;
        }
    }
}

// Call before starting a thread. Keeps the privileges to remake the queues, and to set gates in
// time.
static int give_up_privileges(void) {
    uint64_t kept = XCO_KEEP(CAP_NET_ADMIN) | XCO_KEEP(CAP_NET_RAW) | XCO_KEEP(CAP_BPF) |
                    XCO_KEEP(CAP_SYS_NICE) | XCO_KEEP(CAP_IPC_LOCK);
    return xco_privileges_drop(kept) ? 0 : -errno;
}

int xco_loop_run(struct xco_coordinator *c, int parent) {
    struct waits waits;
    int64_t now_ns = xco_now_ns();
    c->watch = -1;
    int error = xco_messages_open(c);
    error = error == 0 ? xco_places_open(c) : error;
    error = error == 0 ? xco_marks_open(c) : error;
    error = error == 0 ? xco_vms_open(c) : error;
    if (error == 0 && xco_hygenicc_open(c) < 0) {
        return XCO_EXIT_FAILED; // it has been logged
    }
    error = error == 0 && c->places.stand ? xco_bridge_open(c) : error;
    error = error == 0 && c->places.stand ? xco_map_open(c) : error;
    error = error == 0 && c->places.stand ? xco_stations_open(c) : error;
    error = error == 0 ? give_up_privileges() : error;
    error = error == 0 ? xco_epoch_store_start(&c->store, c->config.epoch_file) : error;
    error = error == 0 ? xco_queues_make(c, now_ns) : error;
    if (error != 0) {
        return (int)xco_queues_explain(c, error);
    }
    if (!open_waits(c, &waits, parent) || xco_coordinator_publish_open(c) < 0) {
        xco_say("cannot start: %s", strerror(errno));
        return XCO_EXIT_FAILED;
    }
    xco_core_begin(&c->core, &c->config.core, now_ns);
    xco_core_add(&c->core, now_ns, XCO_CONTROLLER, xco_config_way(&c->config, XCO_CONTROLLER));
    xco_vms_scan(c);
    if (c->places.stand) {
        xco_recall_read(c);
    }
    become_punctual(c);
    xco_spin_begin(&c->spin);
    xco_say("%s: gates stand, open at %s%s", c->config.interface, fallback_words(c),
            c->config.controller_count > 0 ? " until the first directive" : "");
    go_on(c, &waits);
    xco_messages_leave(c);
    xco_coordinator_publish(c, xco_now_ns());
    return XCO_EXIT_OK; // the guard removes the tree, or main if the guard is gone
}
