"""Link coordination: a controller says which V2V flows may send, so that no link is congested."""

__version__ = "0.1.0"
