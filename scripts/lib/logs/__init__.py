"""Server logs of vLLM and SGLang: facts, periodic samples, speculative metrics, warnings and the root
cause."""

from scripts.lib.logs.model import Fact, Failure, LogReport
from scripts.lib.logs.parse import parse_chunks, parse_path, parse_stream
from scripts.lib.logs.root_cause import find_failure

__all__ = ["Fact", "Failure", "LogReport", "find_failure", "parse_chunks", "parse_path", "parse_stream"]
