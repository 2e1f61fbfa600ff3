/* Lists the addresses that the switch knows. */
#ifndef ZOVN_PROGRAM_STATIONS_H
#define ZOVN_PROGRAM_STATIONS_H

#include <stdio.h>

#include "program/ports.h"

/* Write a line `stations next=PLACE`, then one for each address from a place of the table on, at most
 * as many as an answer has room for. `next=0`: there are no more. */
void zovn_stations_write(const struct zovn_ports *ports, uint32_t from, FILE *to);

#endif
