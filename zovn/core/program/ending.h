/* Detaches a port that has frames to send in a queue of its own. */
#ifndef ZOVN_PROGRAM_ENDING_H
#define ZOVN_PROGRAM_ENDING_H

#include "forward/line.h"

/* Deliver what was taken, within limits; then remove the port and free it. `end` has the port count what
 * it cannot send any longer as lost, which is logged; NULL: it has no queue. */
void zovn_ending_detach(struct zovn_line *line, struct zovn_port *port,
                        void (*end)(struct zovn_port *port));

#endif
