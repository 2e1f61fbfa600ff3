// xco-controller: the controller's loop. Usage: xco-controller LOOPFILE [--with-parent]
//
// With --with-parent it exits when its standard input closes: it does not outlive the shell that
// holds the lease. Exit codes are those of enum xco_exit.
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "controller/commands.h"
#include "controller/datagrams.h"
#include "controller/engine/engine.h"
#include "controller/engine/view.h"
#include "controller/node.h"
#include "controller/shell.h"
#include "controller/statistics.h"
#include "common/exit.h"
#include "common/privileges.h"

#define EVENTS 16

// Use real-time scheduling where permitted; without it the loop works with later wake-ups. The
// statistics show which it is.
static void go_realtime(struct xco_shell *shell) {
    const struct sched_param parameters = {.sched_priority = (int)shell->node.config.realtime};
    if (shell->node.config.realtime > 0 && mlockall(MCL_CURRENT | MCL_FUTURE) == 0 &&
        sched_setscheduler(0, SCHED_FIFO, &parameters) == 0) {
        xco_control_counters(shell->node.core)->realtime = 1;
    }
}

static void set_timer(struct xco_shell *shell) {
    const uint64_t deadline = xco_control_deadline(shell->node.core);
    const uint64_t at = deadline < shell->publish_ns ? deadline : shell->publish_ns;
    if (at == shell->timer_ns) {
        return;
    }
    shell->timer_ns = at;
    const struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(at / 1000000000u),
                     .tv_nsec = (long)(at % 1000000000u) + (at == 0 ? 1 : 0)}, // 0 disarms
    };
    if (timerfd_settime(shell->timer, TFD_TIMER_ABSTIME, &when, NULL) != 0) {
        shell->timer_ns = UINT64_MAX; // an invalid instant: retried with the next one
    }
}

static void wake(struct xco_shell *shell, uint64_t now_ns) {
    struct xco_counters *counters = xco_control_counters(shell->node.core);
    uint64_t expirations;
    if (read(shell->timer, &expirations, sizeof expirations) < 0) {
        return; // set again meanwhile
    }
    const uint64_t late = now_ns > shell->timer_ns ? now_ns - shell->timer_ns : 0;
    if (shell->timer_ns != UINT64_MAX && shell->timer_ns != 0) {
        counters->wakes++;
        counters->wake_late_ns += late;
        counters->wake_late_ns_max =
            late > counters->wake_late_ns_max ? late : counters->wake_late_ns_max;
    }
    shell->timer_ns = UINT64_MAX;
}

static void reload_by_signal(struct xco_shell *shell) {
    char problem[XCO_CONFIG_PROBLEM_BYTES];
    if (!xco_shell_reload(shell, problem)) {
        (void)fprintf(stderr, "reload: %s\n", problem);
    }
}

static void take_signal(struct xco_shell *shell) {
    struct signalfd_siginfo info;
    if (read(shell->signals, &info, sizeof info) != (ssize_t)sizeof info) {
        return;
    }
    if (info.ssi_signo == SIGHUP) {
        reload_by_signal(shell);
    } else {
        shell->stopping = true;
    }
}

static void take_parent(struct xco_shell *shell) {
    char bytes[64];
    const ssize_t length = read(STDIN_FILENO, bytes, sizeof bytes);
    shell->stopping = shell->stopping || length == 0 || (length < 0 && errno != EINTR);
}

static void handle(struct xco_shell *shell, int descriptor, uint64_t now_ns) {
    if (descriptor == shell->udp) {
        xco_shell_receive(shell);
    } else if (descriptor == shell->timer) {
        wake(shell, now_ns);
    } else if (descriptor == shell->signals) {
        take_signal(shell);
    } else if (descriptor == shell->listener) {
        xco_command_accept(shell);
    } else if (!xco_command_serve(shell, descriptor) && descriptor == STDIN_FILENO) {
        take_parent(shell);
    }
}

static enum xco_exit run(struct xco_shell *shell) {
    struct epoll_event events[EVENTS];
    while (!shell->stopping) {
        set_timer(shell);
        const int count = epoll_wait(shell->epoll, events, EVENTS, -1);
        if (count < 0 && errno != EINTR) {
            return XCO_EXIT_FAILED;
        }
        for (int i = 0; i < count; i++) {
            handle(shell, events[i].data.fd, xco_shell_now());
        }
        xco_control_advance(shell->node.core, xco_shell_now());
        xco_shell_send(shell, xco_shell_now());
        if (xco_shell_now() >= shell->publish_ns) {
            xco_controller_publish(shell, xco_shell_now());
        }
        if (xco_control_failed(shell->node.core)) {
            (void)fprintf(stderr, "out of memory\n");
            return XCO_EXIT_FAILED;
        }
    }
    return XCO_EXIT_OK;
}

static enum xco_exit open_and_run(struct xco_shell *shell, bool with_parent) {
    char problem[XCO_CONFIG_PROBLEM_BYTES];
    if (!xco_node_open(&shell->node, shell->path, problem) || !xco_shell_open(shell, problem) ||
        !xco_command_open(shell, problem) || !xco_controller_publish_open(shell, problem)) {
        (void)fprintf(stderr, "%s\n", problem);
        return XCO_EXIT_CONFIG;
    }
    if (with_parent && !xco_shell_watch(shell, STDIN_FILENO)) {
        (void)fprintf(stderr, "standard input: %s\n", strerror(errno));
        return XCO_EXIT_CONFIG;
    }
    go_realtime(shell);
    if (!xco_privileges_drop(XCO_KEEP(CAP_IPC_LOCK))) { // later memory is locked as well
        (void)fprintf(stderr, "privileges cannot be dropped: %s\n", strerror(errno));
        return XCO_EXIT_FAILED;
    }
    return run(shell);
}

int main(int argc, char **argv) {
    const bool with_parent = argc == 3 && strcmp(argv[2], "--with-parent") == 0;
    if (argc != 2 && !with_parent) {
        (void)fprintf(stderr, "usage: xco-controller LOOPFILE [--with-parent]\n");
        return XCO_EXIT_CONFIG;
    }
    struct xco_shell shell = {.path = argv[1],
                              .epoll = -1,
                              .udp = -1,
                              .timer = -1,
                              .signals = -1,
                              .listener = -1,
                              .timer_ns = UINT64_MAX};
    for (size_t i = 0; i < XCO_CLIENTS_MAX; i++) {
        shell.clients[i] = -1;
    }
    const enum xco_exit result = open_and_run(&shell, with_parent);
    if (shell.stats.header != NULL) {
        xco_controller_publish(&shell, xco_shell_now());
    }
    xco_command_close(&shell);
    xco_shell_close(&shell);
    return (int)result;
}
