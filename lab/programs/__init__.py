"""The programs of the lab: sources, sinks, forwarders and hogs, and their handles."""
