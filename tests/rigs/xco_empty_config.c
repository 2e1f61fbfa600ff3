// Reads a coordinator's configuration that lists no address and no way.
//
// Built with the undefined-behaviour sanitizer: sorting or searching NULL ends it.
#include <stdio.h>
#include <string.h>

#include "coordinator/config.h"

static char text[] = "interface e0\nkey_file key\nline_bps 1000000000\nsmall_bps 50000000\n"
                     "newcomer_bps 50000000\noutside_bps 100000000\ncontroller 10.0.0.9 7400\n";

int main(void) {
    static struct xco_coordinator_config config;
    const struct in6_addr any = IN6ADDR_LOOPBACK_INIT;
    char message[256] = "";
    FILE *file = fmemopen(text, strlen(text), "r");
    bool good = file != NULL && xco_config_read(&config, file, message, sizeof message);
    bool unknown =
        xco_config_host(&config, &any) == XCO_CONTROLLER && xco_config_way(&config, 0)->count == 0;
    printf("%s", message);
    xco_config_free(&config);
    return good && unknown ? 0 : 1;
}
