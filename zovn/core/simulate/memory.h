// Memory that is there or ends the program: a simulation cannot continue with less.
#ifndef MEMORY_H
#define MEMORY_H

#include <stddef.h>

// Zeroed memory for `count` things; exits with a message if there is none.
void *memory_new(size_t count, size_t size);

// Grow to `count` things; the new ones are not initialised.
void *memory_grow(void *old, size_t count, size_t size);

#endif
