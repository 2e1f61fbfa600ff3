// A rate that falls by a step for each mark, and rises by one in each calm period. Pure.
//
// HyGenICC as published, as xco/laws/hygenicc.py writes it to be read. Marks come with the timer
// here, so that congestion is of this period or over.
#ifndef XCO_COORDINATOR_ENGINE_BY_STEPS_H
#define XCO_COORDINATOR_ENGINE_BY_STEPS_H

// Returns the rate after a period that brought back so many marks (Algorithm 1, lines 12 to 26);
// `line_bps` is the most that it can be.
double xco_steps_follow(double rate_bps, double marks, double line_bps);

// Returns what may be sent at a rate: a part of the line is certain.
double xco_steps_allowed(double rate_bps, double line_bps);

#endif
