// Writes lines to standard error without waiting.
#ifndef XCO_COMMON_LOG_H
#define XCO_COMMON_LOG_H

// Sets the prefix of each line; shorter than 200 bytes. The caller keeps ownership.
void xco_log_name(const char *name);

// Writes a line to standard error; never waits, and drops what does not fit.
void xco_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
