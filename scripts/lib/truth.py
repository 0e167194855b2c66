"""Truth from the server: what its log says was resolved, against what the row of the cell says was asked.

A mismatch makes the cell mislabelled. What the log does not say is no mismatch but "not confirmed", since engines
and releases differ in what they print. Settings that speculation itself changes (scheduled tokens, asynchronous
scheduling, CUDA graph mode) are differences from the baseline, not mismatches: see server_notes.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scripts.lib.asked import Asked
from scripts.lib.cell import BASELINE
from scripts.lib.logs import Fact, LogReport
from scripts.lib.logs.checks import speculator_not_active
from scripts.lib.logs.config_vllm import canonical_method
from scripts.lib.logs.periodic import VARIABLE_K_METHODS
from scripts.lib.logs.prometheus import MetricsDelta
from scripts.lib.truth_flags import flag_claims

_ECHO = "vllm arguments"
"""Dialect of facts that repeat the command line: they can contradict the row, but not confirm it."""
_LOOKUP = frozenset({"ngram", "ngram_gpu"})
_ONE_METHOD_IN_SGLANG = frozenset({"mtp", "eagle"})
"""NEXTN is rewritten to EAGLE before SGLang prints its arguments."""
_MOST_CHARACTERS = 160


@dataclass(frozen=True)
class Mismatch:
    """One thing that is not what the row says. `line` is what the server printed, verbatim but shortened; None,
    like its number, where /metrics tells it."""

    what: str
    asked: str
    resolved: str
    line: str | None = None
    line_number: int | None = None

    @property
    def words(self) -> str:
        return f"{self.what}: asked {self.asked}, the server resolved {self.resolved}"

    @property
    def text(self) -> str:
        """Everything in one line, for the reasons of a record."""
        if self.line is None:
            return self.words
        where = "" if self.line_number is None else f" line {self.line_number}"
        return f"{self.words} (server log{where}: {self.line})"


@dataclass(frozen=True)
class _Claim:
    """`agrees` is None where the log does not say."""

    what: str
    asked: str
    agrees: bool | None
    resolved: str = ""
    line: str | None = None
    line_number: int | None = None


def compare(asked: Asked, report: LogReport | None, counters: MetricsDelta | None = None) -> list[Mismatch]:
    """What the server resolved otherwise than asked, by its log and by its counters over the window."""
    claims = [*_claims(asked, report or LogReport()), *_counted(asked, counters)]
    found: dict[str, Mismatch] = {}
    for claim in claims:
        if claim.agrees is False:
            mismatch = Mismatch(claim.what, claim.asked, claim.resolved, claim.line, claim.line_number)
            found.setdefault(claim.what, mismatch)
    return list(found.values())


def unconfirmed(asked: Asked, report: LogReport | None, counters: MetricsDelta | None = None) -> list[str]:
    """Names of what was asked and neither confirmed nor contradicted."""
    claims = [*_claims(asked, report or LogReport()), *_counted(asked, counters)]
    settled = {claim.what for claim in claims if claim.agrees is not None}
    return list(dict.fromkeys(claim.what for claim in claims if claim.what not in settled))


def _claims(asked: Asked, report: LogReport) -> Iterator[_Claim]:
    yield from _speculation(asked, report)
    yield _length(asked, report)
    yield from _checkpoints(asked, report)
    yield from _blocks(asked, report)
    if report.engine is not None:
        for what, wanted, fact, agrees in flag_claims(asked, report):
            yield _of_fact(what, wanted, fact, agrees)


def _of_fact(what: str, asked: object, fact: Fact | None, agrees: bool | None) -> _Claim:
    if fact is None:
        return _Claim(what, str(asked), None)
    return _Claim(what, str(asked), agrees, str(fact.value), _excerpt(fact.raw), fact.line)


def _excerpt(line: str) -> str:
    return line[:_MOST_CHARACTERS].rstrip(" ,")


def _echoed(fact: Fact, agrees: bool | None) -> bool | None:
    return None if agrees and fact.dialect == _ECHO else agrees


def _speculation(asked: Asked, report: LogReport) -> Iterator[_Claim]:
    method, k = report.facts.get("speculative_method"), report.facts.get("num_speculative_tokens")
    packaged = speculator_not_active(asked.checkpoint, report)
    if packaged is not None:
        yield _Claim("speculator", "the checkpoint's own", False, packaged, _excerpt(method.raw), method.line)
    if method is not None and (method.value == BASELINE) != (asked.k == 0):
        resolved = _words(method.value, k.value if k else None)
        line = _excerpt(method.raw)
        yield _Claim("speculation", _words(asked.method, asked.k), False, resolved, line, method.line)
        return
    if asked.k == 0:
        yield _of_fact("method", BASELINE, method, _echoed(method, True) if method else None)
        return
    same = _same_method(asked.method, method, report) if method else None
    yield _of_fact("method", asked.method or "not known", method, _echoed(method, same) if method else None)
    yield _of_fact("k", asked.k, k, _echoed(k, k.value == asked.k) if k else None)


def _words(method: str | None, k: int | None) -> str:
    if method == BASELINE:
        return f"{BASELINE} (no speculation)"
    return f"{method or 'a method'} with k {'not stated' if k is None else k}"


def _same_method(asked: str | None, method: Fact, report: LogReport) -> bool | None:
    """Documented renames are the same method; None where the log does not name the method."""
    if asked is None:
        return None
    wanted, resolved = canonical_method(asked), method.value
    if not _method_stated(report):
        # Old dumps name the drafter alone: enough to tell lookup from a model, not one model method from another.
        return False if (wanted in _LOOKUP) != (resolved in _LOOKUP) else None
    if wanted == resolved or (report.engine == "sglang" and {wanted, resolved} <= _ONE_METHOD_IN_SGLANG):
        return True
    return any(
        (notice.values.get("method"), notice.values.get("to")) == (asked, resolved)
        for notice in report.notices("method_renamed")
    )


def _method_stated(report: LogReport) -> bool:
    if report.engine == "sglang":
        return True
    settings = report.config.get("speculative_config") or report.args.get("speculative_config") or ""
    return "method" in settings


def _length(asked: Asked, report: LogReport) -> _Claim:
    limited = report.notices("target_length_limited")
    if limited:
        length, line = limited[-1].values["to"], _excerpt(limited[-1].text)
        resolved, same = f"{length} (limited by the drafter)", length == asked.max_model_len
        return _Claim("max_model_len", str(asked.max_model_len), same, resolved, line, limited[-1].line)
    fact = report.facts.get("max_model_len")
    return _of_fact("max_model_len", asked.max_model_len, fact, fact and fact.value == asked.max_model_len)


def _checkpoints(asked: Asked, report: LogReport) -> Iterator[_Claim]:
    if asked.model is not None:
        fact = report.facts.get("model")
        same = fact and same_checkpoint(asked.model, str(fact.value))
        yield _of_fact("model", asked.model, fact, _echoed(fact, same) if fact else None)
    drafter = asked.speculative.get("model")
    fact = report.facts.get("drafter_model")
    if isinstance(drafter, str) and fact is not None:
        yield _of_fact("drafter", drafter, fact, same_checkpoint(drafter, str(fact.value)))


def same_checkpoint(asked: str, resolved: str) -> bool | None:
    """Whether two names can be one checkpoint: a path and its tail, a hub name and its cached snapshot. None for
    an address, which engines replace by a folder of their own."""
    if "://" in asked:
        return None
    wanted, found = asked.rstrip("/").removeprefix("./"), resolved.rstrip("/").removeprefix("./")
    if wanted == found or found.endswith("/" + wanted) or wanted.endswith("/" + found):
        return True
    return f"/models--{wanted.replace('/', '--')}/" in found + "/"


def _blocks(asked: Asked, report: LogReport) -> Iterator[_Claim]:
    """A KV cache whose size was forced although nobody asked for it."""
    if not asked.launched:
        return
    wanted = asked.flags.get("num-gpu-blocks-override")
    for notice in report.notices("kv_blocks_forced"):
        measured, forced = notice.values["measured"], notice.values["forced"]
        # Releases that profile graph capture force a small cache for a moment, before any memory was measured.
        if measured and str(forced) != wanted:
            yield _Claim(
                "num_gpu_blocks",
                f"{wanted or 'the measured'} blocks",
                False,
                f"{forced} blocks (forced; {measured} measured)",
                _excerpt(notice.text),
                notice.line,
            )


def _counted(asked: Asked, counters: MetricsDelta | None) -> Iterator[_Claim]:
    """What /metrics tells where there is no log: drafts of a baseline, and k by the positions that are counted."""
    if counters is None:
        return
    drafts, positions = counters["drafts"], counters.per_position
    if asked.k == 0 and drafts:
        wanted = _words(BASELINE, 0)
        yield _Claim("speculation", wanted, False, f"{drafts:.0f} drafts in the window, by /metrics")
    if drafts == 0 and _decoded_without_drafts(asked, counters):
        wanted = _words(asked.method, asked.k)
        yield _Claim("speculation", wanted, False, "no draft in the window, by /metrics")
    if asked.k > 0 and positions:
        counted = f"{len(positions)} positions counted in /metrics"
        yield _Claim("k", str(asked.k), len(positions) == asked.k, counted)


def _decoded_without_drafts(asked: Asked, counters: MetricsDelta) -> bool:
    """Whether a method that drafts at every step had steps to draft at, by vLLM's counters (SGLang's are of few releases)."""
    if asked.k == 0 or asked.method is None or asked.method in VARIABLE_K_METHODS or asked.stops_drafting:
        return False
    tokens, requests = counters["generation_tokens"], counters["requests"]
    if counters.engine != "vllm" or tokens is None or requests is None:
        return False
    # An answer that ends within a step or two may end without a draft.
    return tokens > (asked.k + 2) * requests > 0
