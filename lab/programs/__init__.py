"""The programs of the lab: sources, sinks, forwarders and hogs, and the handles on them."""
