"""Entry points: a path or a stream of bytes becomes a LogReport."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from scripts.lib.logs.collect import Collector
from scripts.lib.logs.combine import combine
from scripts.lib.logs.model import LogReport
from scripts.lib.logs.root_cause import find_failure
from scripts.lib.logs.scan import Scanner

CHUNK_BYTES = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31  # zlib's code for gzip framing


def parse_chunks(chunks: Iterable[bytes]) -> LogReport:
    """Report of a log given as byte chunks, cut anywhere. Never raises for any content."""
    collector = Collector()
    scanner = Scanner(collector)
    for chunk in chunks:
        scanner.feed(chunk)
    scanner.close()
    return _report(collector, scanner)


def parse_path(path: Path) -> LogReport:
    """Report of a log file, plain or gzip (recognised by its first bytes).

    Raises OSError if the file cannot be read. A gzip file that is cut short is read as far as it goes, and
    the report's note says so.
    """
    with Path(path).open("rb") as stream:
        return parse_stream(stream)


def parse_stream(stream: BinaryIO) -> LogReport:
    """Report of an open byte stream, read to its end; gzip and damage are handled as by parse_path."""
    head = stream.read(len(_GZIP_MAGIC))
    chunks = chain([head], iter(lambda: stream.read(CHUNK_BYTES), b""))
    if head != _GZIP_MAGIC:
        return parse_chunks(chunks)
    trouble: list[str] = []
    report = parse_chunks(_gunzip(chunks, trouble))
    report.note = "; ".join([part for part in (report.note, *trouble) if part]) or None
    return report


def _gunzip(chunks: Iterable[bytes], trouble: list[str]) -> Iterator[bytes]:
    """Decompressed portions, all of them even if the file was cut (the gzip module would withhold the last
    ones)."""
    unpack, ended = zlib.decompressobj(_GZIP_WINDOW), True
    for packed in chunks:
        data = packed
        while data:
            if unpack.eof:
                unpack = zlib.decompressobj(_GZIP_WINDOW)
            try:
                yield unpack.decompress(data)
            except zlib.error as error:
                trouble.append(f"the gzip data is damaged ({error}); what stands before was read")
                return
            data, ended = unpack.unused_data, unpack.eof
    if not ended:
        trouble.append("the gzip data ends early; what is there was read")


def _report(collector: Collector, scanner: Scanner) -> LogReport:
    facts, missing, notices = combine(collector)
    report = LogReport(
        engine=collector.engine,
        version=collector.version,
        generation=collector.generation,
        facts=facts,
        missing=missing,
        intervals=collector.samples.intervals,
        speculation=collector.samples.speculation,
        warnings=sorted(notices, key=lambda notice: notice.offset),
        memory_steps=collector.memory_steps,
        config=collector.config,
        args=collector.args,
        incidents=collector.tracebacks,
        phase=collector.phase,
        ready_offset=collector.ready_offset,
        shutdown_offset=collector.shutdown_offset,
        boots=collector.boots,
        lines=scanner.lines,
        size_bytes=scanner.size_bytes,
    )
    if collector.boots > 1:
        report.note = f"the log holds {collector.boots} boots; everything here is about the last one"
    report.failure = find_failure(report)
    return report
