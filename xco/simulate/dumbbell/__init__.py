"""The dumbbell of the SDN-GCC paper: one marking port, several senders, rates that arrive late."""
