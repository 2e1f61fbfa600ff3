// The loop file: the Python shell's settings for the controller's loop, one `key value` a line.
#ifndef XCO_CONTROLLER_CONFIG_H
#define XCO_CONTROLLER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/engine/network.h"
#include "controller/engine/settings.h"

#define XCO_CONFIG_PROBLEM_BYTES 512
#define XCO_CONFIG_TEXT_BYTES 256

struct xco_controller_config {
    struct xco_control_settings core;
    char listen[XCO_CONFIG_TEXT_BYTES]; // address, IPv4 or IPv6
    char key_path[XCO_CONFIG_TEXT_BYTES];
    char stats_path[XCO_CONFIG_TEXT_BYTES];   // empty: none is published
    char command_path[XCO_CONFIG_TEXT_BYTES]; // empty: no commands
    uint32_t port;                            // 0: any; the statistics say which
    uint32_t realtime;                        // SCHED_FIFO priority; 0: ordinary scheduling
};

// Reads a loop file. False: `problem` names file, line and error, and the caller frees nothing. On
// success the caller owns the network and the weights (NULL: all 1).
bool xco_controller_config_read(const char *path, struct xco_controller_config *config,
                                struct xco_network *network, uint32_t **weights,
                                char problem[XCO_CONFIG_PROBLEM_BYTES]);

#endif
