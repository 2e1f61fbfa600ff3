/* What the control socket understands. */
#ifndef ZOVN_PROGRAM_COMMANDS_H
#define ZOVN_PROGRAM_COMMANDS_H

#include "program/config.h"
#include "program/ports.h"

/* Do what a line says and write the answer; return false if the program shall end. */
bool zovn_command(struct zovn_ports *ports, char *line, FILE *answer);

#endif
