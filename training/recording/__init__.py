"""What a sweep measured: samples, visits of caps, the file that keeps them."""
