/* Starts DPDK with as little as librte_vhost needs: a heap. */
#include "vhost/library.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>

#include "system/log.h"
#include "vhost/call.h"
#include "vhost/guard.h"

static size_t first_of(const cpu_set_t *cpus) {
    size_t cpu = 0;
    while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, cpus))
        cpu++;
    return cpu;
}

static bool protect(void) {
    if (zovn_guard_install() && zovn_call_start())
        return true;
    zovn_say("asynchronous I/O, which notifies guests: %s: is fs.aio-max-nr large enough?",
             strerror(errno));
    return false;
}

/* DPDK binds the thread that starts it to one CPU: that is undone. */
bool zovn_vhost_library_start(void) {
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof cpus, &cpus) < 0) {
        zovn_say("the CPUs of this process are not known: %s", strerror(errno));
        return false;
    }
    char core[24];
    snprintf(core, sizeof core, "%zu", first_of(&cpus));
    char *arguments[] = {
        "zovn-switch", "--no-huge",         "-m", "64", "--no-pci", "--no-telemetry",
        "--no-shconf", "--log-level=error", "-l", core};
    bool started = rte_eal_init(sizeof arguments / sizeof arguments[0], arguments) >= 0;
    sched_setaffinity(0, sizeof cpus, &cpus);
    if (!started)
        zovn_say("DPDK does not start");
    return started && protect();
}

void zovn_vhost_library_end(void) {
    rte_eal_cleanup();
}
