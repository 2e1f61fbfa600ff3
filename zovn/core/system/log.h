/* Lines on standard error, without waiting for their reader. */
#ifndef ZOVN_SYSTEM_LOG_H
#define ZOVN_SYSTEM_LOG_H

/* Write a line; it is lost if it does not fit into the pipe. */
void zovn_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
