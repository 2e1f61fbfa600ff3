/* Reads the kernel's counters of an interface: /proc/net/dev, which follows the network namespace. */
#include "system/dropped.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Eight counters of what was received come first; then bytes, packets, errors and drops. */
static bool read_line(const char *line, const char *interface, uint64_t *dropped) {
    size_t length = strlen(interface);
    line += strspn(line, " ");
    if (strncmp(line, interface, length) != 0 || line[length] != ':')
        return false;
    return sscanf(line + length + 1, "%*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %" SCNu64,
                  dropped) == 1;
}

uint64_t zovn_dropped(const char *interface) {
    char line[512];
    uint64_t dropped = 0;
    FILE *file = fopen("/proc/thread-self/net/dev", "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file) && !read_line(line, interface, &dropped)) {
    }
    fclose(file);
    return dropped;
}
