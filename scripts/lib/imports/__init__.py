"""Results that other tools measured, as records of external cells: same columns, what a tool does not tell is absent."""

from scripts.lib.imports.read import UnreadableResult, imported_records

__all__ = ["UnreadableResult", "imported_records"]
