"""Results of a sweep: samples, visits of caps, and the file that stores them."""
