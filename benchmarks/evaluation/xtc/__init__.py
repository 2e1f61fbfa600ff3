"""The experiments of the XTC paper on real packets of the lab."""
