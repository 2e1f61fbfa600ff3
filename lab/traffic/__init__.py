"""Traffic of a fabric: barrier reads, streams, short flows, messages, ping, capture, delay."""
