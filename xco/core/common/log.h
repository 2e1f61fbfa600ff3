// Says lines on standard error without waiting.
#ifndef XCO_COMMON_LOG_H
#define XCO_COMMON_LOG_H

// Sets the name with which each line begins; shorter than 200 bytes. It stays the caller's.
void xco_log_name(const char *name);

// Says a line on standard error; never waits, and drops what it has no room for.
void xco_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
