/* Undoes what a killed switch left at interfaces. */
#ifndef ZOVN_PROGRAM_RELEASE_H
#define ZOVN_PROGRAM_RELEASE_H

#include <stdbool.h>

/* Print a line for each interface: its name, then `released`, `clean`, `missing`, or `refused` and
 * why. The list ends with NULL. Return whether none was refused. */
bool zovn_release(char *const *interfaces);

#endif
