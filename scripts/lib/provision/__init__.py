"""Builds what the workflow needs beside itself: engine environments, and small models that speculate on a CPU."""
