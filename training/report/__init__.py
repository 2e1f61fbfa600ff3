"""Reports of a fit: summary, plots, HTML pages, and files of data."""
