"""Virtual routers on this machine: namespaces, forwarders and traffic."""
