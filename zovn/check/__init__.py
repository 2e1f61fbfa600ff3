"""Whether packets can be lost at this end of a lossless path, and the commands that prevent it."""
