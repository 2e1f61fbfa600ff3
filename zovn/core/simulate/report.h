// The results of a run, as JSON.
#ifndef REPORT_H
#define REPORT_H

#include <stdio.h>

#include "simulation.h"

void report_write(const struct simulation *simulation, FILE *file);

#endif
