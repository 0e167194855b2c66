"""A run beside published figures."""
