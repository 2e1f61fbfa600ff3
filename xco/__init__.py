"""Link coordination: a controller decides which V2V flows may send, to keep links uncongested."""

__version__ = "0.1.0"
