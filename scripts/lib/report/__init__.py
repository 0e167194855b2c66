"""The report: the answer first, then everything that makes it believable, in one page that needs nothing else."""
