"""What the row of a cell says its server is: the axes, and what the server's command line says beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scripts.lib.cell import BASELINE, Cell
from scripts.lib.engines.sglang import ALGORITHMS
from scripts.lib.methods import METHOD_KINDS

_FLAG = re.compile(r"--?[A-Za-z]")  # a lone dash before a digit is a negative value
_SHORT = {
    "tp": "tensor-parallel-size",
    "tp-size": "tensor-parallel-size",
    "pp": "pipeline-parallel-size",
    "pp-size": "pipeline-parallel-size",
    "q": "quantization",
}


@dataclass(frozen=True)
class Asked:
    """`method` is the kind, not the config's name for it; None where only such a name is known. `flags`: value
    as text, True and False for switches. `checkpoint`: what the target's config.json says of a packaged
    speculator. `launched`: the workflow started the server; of any other server only the axes are asked."""

    method: str | None
    k: int
    max_model_len: int
    model: str | None = None
    speculative: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, str | bool] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    checkpoint: Mapping[str, Any] = field(default_factory=dict)
    launched: bool = True

    @property
    def synthetic(self) -> bool:
        """Whether the engine was told to make acceptance up instead of verifying drafts."""
        return self.speculative.get("rejection_sample_method") == "synthetic"

    @property
    def stops_drafting(self) -> bool:
        """Whether a schedule of k by number of running requests has steps without a draft."""
        schedule = self.speculative.get("num_speculative_tokens_per_batch_size") or ()
        return any(entry[-1] == 0 for entry in schedule)


def asked_of(cell: Cell, manifest: Mapping[str, Any]) -> Asked:
    """What was asked for when the evidence with this manifest was measured."""
    identity, server = manifest.get("identity") or {}, manifest["server"]
    # The identity has the engine's own command, also where a container runtime started it.
    argv = identity.get("argv") or server.get("argv") or ()
    flags = parse_flags(argv)
    speculative = _speculative(flags)
    return Asked(
        method=_method(cell, speculative),
        k=cell.server.k,
        max_model_len=cell.server.max_model_len,
        model=_model(argv, flags),
        speculative=speculative,
        flags=flags,
        environment=server.get("environment") or {},
        checkpoint=manifest.get("checkpoint") or {},
        launched=bool(argv),
    )


def checkpoints(argv: Sequence[str]) -> tuple[str, ...]:
    """Names or paths of the target and of the drafter, where the command line names them."""
    flags = parse_flags(argv)
    named = (_model(argv, flags), _speculative(flags).get("model"))
    return tuple(dict.fromkeys(name for name in named if isinstance(name, str)))


def parse_flags(argv: Sequence[str]) -> dict[str, str | bool]:
    """Flags of a command line by name, dashes inside names; `--no-x` is x False, several values are joined by
    blanks, the last of two equal flags counts."""
    flags: dict[str, str | bool] = {}
    name = None
    for word in argv:
        if _FLAG.match(word):
            name, equals, value = word.lstrip("-").partition("=")
            name = name.replace("_", "-")
            name = _SHORT.get(name, name)
            flags.pop(name.removeprefix("no-"), None)
            flags[name] = value if equals else True
        elif name is not None:
            flags[name] = word if flags[name] is True else f"{flags[name]} {word}"
    return {
        name.removeprefix("no-") if value is True else name: not name.startswith("no-")
        if value is True
        else value
        for name, value in flags.items()
    }


def _speculative(flags: Mapping[str, str | bool]) -> Mapping[str, Any]:
    if "speculative-algorithm" in flags:
        return _of_sglang(flags)
    try:
        config = json.loads(str(flags.get("speculative-config")))
    except ValueError:
        return {}
    return config if isinstance(config, dict) else {}


def _of_sglang(flags: Mapping[str, str | bool]) -> Mapping[str, Any]:
    """The keys of vLLM's speculative config that SGLang's flags say as well. A head inside the target (mtp) runs as EAGLE whose
    draft is the target."""
    algorithm, drafter = flags["speculative-algorithm"], flags.get("speculative-draft-model-path")
    methods = [method for method, name in ALGORITHMS.items() if name == algorithm]
    inside = drafter == flags.get("model-path")
    found = {"method": next((m for m in methods if len(methods) == 1 or (m == "mtp") == inside), None)}
    return found | ({"model": drafter} if drafter else {})


def _method(cell: Cell, speculative: Mapping[str, Any]) -> str | None:
    if cell.server.k == 0:
        return BASELINE
    if isinstance(speculative.get("method"), str):
        return speculative["method"]
    return cell.server.method if cell.server.method in METHOD_KINDS else None


def _model(argv: Sequence[str], flags: Mapping[str, str | bool]) -> str | None:
    named = flags.get("model") or flags.get("model-path")
    if isinstance(named, str):
        return named
    words = list(argv)
    behind = words.index("serve") + 1 if "serve" in words else len(words)
    return words[behind] if behind < len(words) and not _FLAG.match(words[behind]) else None
