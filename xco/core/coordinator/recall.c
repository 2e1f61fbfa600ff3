// Recalls at which host each station was, from the file that zovn's wires read; part of the
// coordinator's shell.
//
// The controller may have started meanwhile, too: then it does not know what is at a host of which
// no coordinator runs, and only this file does. What it knows overrules the file.
#include "coordinator/recall.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/engine/location_line.h"
#include "coordinator/map.h"
#include "common/log.h"

#define LINE_BYTES 256

static void take(struct xco_coordinator *c, char *line) {
    struct xco_located entry = {.place = {.kind = XCO_PLACE_MAC, .vlan = XCO_ANY_VLAN}};
    struct in6_addr host;
    if (xco_location_line_read(line, entry.place.address, &host)) {
        entry.host = xco_config_host(&c->config, &host);
    } else {
        entry.host = XCO_NOWHERE;
    }
    if (entry.host < XCO_HOSTS_MAX) { // otherwise the topology no longer has it
        xco_map_recall(c, &entry);
    }
}

void xco_recall_read(struct xco_coordinator *c) {
    char line[LINE_BYTES];
    FILE *file = c->config.locations_file[0] == '\0' ? NULL : fopen(c->config.locations_file, "re");
    if (file == NULL) {
        if (c->config.locations_file[0] != '\0' && errno != ENOENT) {
            xco_say("%s: cannot be read: %s", c->config.locations_file, strerror(errno));
        }
        return;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        take(c, line);
    }
    fclose(file);
}
