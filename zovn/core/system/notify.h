/* What the service manager is told: sd_notify(3), one datagram for each message. */
#ifndef ZOVN_SYSTEM_NOTIFY_H
#define ZOVN_SYSTEM_NOTIFY_H

/* Send a state, such as "READY=1". It is lost if there is no service manager, or no room. */
void zovn_notify(const char *state);

/* Return a timer that becomes readable twice in the watchdog's time; -1: there is no watchdog. */
int zovn_watchdog_open(void);

/* Take what made the timer readable, and tell the watchdog that the program works. */
void zovn_watchdog_feed(int timer);

#endif
