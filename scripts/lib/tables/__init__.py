"""The final tables, all built from the tidy cells table: each module has a frame (full figures) and a text
(rounded)."""
