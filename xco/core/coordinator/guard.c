// The guard of a coordinator's loop: removes the queues when the loop is killed or hangs.
//
// The guard is the parent, the loop its child. Each notices the other's exit and removes the
// queues. Only if both are killed together do the queues stay; ExecStopPost then removes them.
#include "coordinator/guard.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/capability.h>

#include "coordinator/engine/progress.h"
#include "coordinator/loop.h"
#include "coordinator/loss.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/privileges.h"

// Uses the index of the gated interface: its name may have changed.
static int release(const struct xco_coordinator *c) {
    int interface = __atomic_load_n(&c->shared->interface, __ATOMIC_RELAXED);
    uint64_t line_bps = c->config.core.line_bps;
    int64_t drain_ns = (int64_t)c->config.drain_ns;
    uint64_t lost;
    int error = interface == 0 ? xco_gate_release(c->config.interface, line_bps, drain_ns, &lost)
                               : xco_gate_release_index(interface, line_bps, drain_ns, &lost);
    xco_queues_say_lost(c->config.interface, lost);
    if (error != 0) {
        xco_say("%s: its queues cannot be removed: %s", c->config.interface, strerror(-error));
    }
    return error;
}

static int loop_in_child(struct xco_coordinator *c, int guard) {
    int code = xco_loop_run(c, guard);
    return release(c) == 0 ? code : XCO_EXIT_FAILED;
}

// Above the loop's priority, so that a spinning loop cannot block its guard.
static void become_watchful(const struct xco_coordinator *c) {
    struct sched_param priority = {.sched_priority = (int)c->config.priority + 1};
    if (c->config.priority > 0 && sched_setscheduler(0, SCHED_FIFO, &priority) < 0) {
        xco_say("the guard has no real-time priority: %s", strerror(errno));
    }
    if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0) {
        xco_say("the guard's memory cannot be locked: %s", strerror(errno));
    }
}

// Waits for the loop to exit; forwards the stop signal and notes it; kills a loop that hangs.
static int wait_for(const struct xco_coordinator *c, pid_t loop, const sigset_t *signals,
                    bool *told_to_stop) {
    int64_t hang_ns = (int64_t)c->config.hang_ns;
    struct timespec quarter = {.tv_sec = hang_ns / 4 / 1000000000,
                               .tv_nsec = hang_ns / 4 % 1000000000};
    struct xco_progress seen;
    xco_progress_begin(&seen, xco_now_ns());
    for (int status;;) {
        int signal = sigtimedwait(signals, NULL, &quarter);
        if (signal == SIGTERM || signal == SIGINT) {
            *told_to_stop = true;
            kill(loop, SIGTERM);
        }
        if (waitpid(loop, &status, WNOHANG) == loop) {
            return status;
        }
        uint64_t turns = __atomic_load_n(&c->shared->turns, __ATOMIC_RELAXED);
        if (xco_progress_hangs(&seen, turns, xco_now_ns(), hang_ns)) {
            kill(loop, SIGKILL);
            xco_say("the loop hangs: it is killed");
        }
    }
}

static int guard(const struct xco_coordinator *c, pid_t loop, const sigset_t *signals) {
    become_watchful(c);
    uint64_t kept = XCO_KEEP(CAP_NET_ADMIN) | XCO_KEEP(CAP_NET_RAW) | XCO_KEEP(CAP_IPC_LOCK);
    if (!xco_privileges_drop(kept)) {
        xco_say("the guard's privileges cannot be dropped: %s", strerror(errno));
    }
    bool told_to_stop = false;
    int status = wait_for(c, loop, signals, &told_to_stop);
    int error = release(c);
    if (WIFEXITED(status)) {
        return error == 0 ? WEXITSTATUS(status) : XCO_EXIT_FAILED;
    }
    xco_say("the loop ended by signal %d: %s is unshaped", WTERMSIG(status), c->config.interface);
    // A loop that hangs while stopping has no work left that the guard does not do.
    return told_to_stop && error == 0 ? XCO_EXIT_OK : XCO_EXIT_FAILED;
}

int xco_guard_run(struct xco_coordinator *c) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    c->shared =
        mmap(NULL, sizeof *c->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (c->shared == MAP_FAILED || self < 0) {
        xco_say("cannot start: %s", strerror(errno));
        return XCO_EXIT_FAILED;
    }
    pid_t loop = fork();
    if (loop < 0) {
        xco_say("cannot start: %s", strerror(errno));
        return XCO_EXIT_FAILED;
    }
    return loop == 0 ? loop_in_child(c, self) : guard(c, loop, &signals);
}
