/* Settings and counters of a port as words. */
#ifndef ZOVN_PROGRAM_REPORT_H
#define ZOVN_PROGRAM_REPORT_H

#include <stdio.h>

#include "forward/line.h"

void zovn_report_settings(const struct zovn_port_options *options, FILE *to);
void zovn_report_state(const struct zovn_line_state *state, FILE *to);

#endif
