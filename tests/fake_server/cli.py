"""The command lines of `vllm serve` and of SGLang: what matters is understood, the rest is tolerated and echoed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

VERSION = "0.27.1"

_MULTIPLIER = {
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "K": 2**10,
    "M": 2**20,
    "G": 2**30,
    "T": 2**40,
}
_BOOLEAN = re.compile(
    r"enable_|disable_|no_|enforce_eager|trust_remote_code|async_scheduling|language_model_only|headless"
)
_JSON = {"speculative_config", "compilation_config", "hf_overrides", "override_generation_config"}
_SHORT = {
    "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "dp": "data_parallel_size",
    "sc": "speculative_config",
    "cc": "compilation_config",
    "q": "quantization",
    "O": "optimization_level",
}


SGLANG = "sglang.launch_server"
"""As the first word of the command line: the rest is SGLang's."""
_SGLANG_METHODS = {
    "none": "none",
    "EAGLE": "eagle",
    "EAGLE3": "eagle3",
    "STANDALONE": "draft_model",
    "NGRAM": "ngram",
    "DSPARK": "dspark",
    "DFLASH": "dflash",
}

# Flags that are whole numbers, with what holds without them; "1k" is 1000 and "1K" 1024.
_INTEGERS: dict[str, int | None] = {"port": 8000, "max_model_len": None, "max_num_seqs": 256}


class UsageError(Exception):
    """A command line that vLLM's parser refuses; the text is its last line."""


@dataclass(frozen=True)
class Launch:
    """One launch configuration as the command line gives it; without speculation `k` is 0, `method` none."""

    model: str
    served_names: list[str]
    host: str
    port: int
    max_model_len: int | None
    max_num_seqs: int
    method: str
    k: int
    drafter: str | None
    engine: str = "vllm"
    flags: dict[str, object] = field(default_factory=dict)

    def flag(self, name: str, default: object = None) -> object:
        return self.flags.get(name, default)

    @property
    def k_by_running(self) -> list | None:
        """[first, last, k] by number of running requests."""
        return (self.flags.get("speculative_config") or {}).get("num_speculative_tokens_per_batch_size")

    @property
    def prefix_caching(self) -> bool:
        return not self.flags.get("no_enable_prefix_caching")


def parse_launch(argv: list[str]) -> Launch:
    """The launch that `argv` (without the program) describes. Raises UsageError."""
    if argv[:1] == [SGLANG]:
        return _sglang_launch(argv[1:])
    flags, rest = _split(argv)
    if rest[:1] == ["serve"]:
        rest = rest[1:]
    if rest:
        flags = {"model_tag": rest[0], **flags, "model": rest[0]}
    if len(rest) > 1:
        raise UsageError(f"unrecognized arguments: {' '.join(rest[1:])}")
    if "model" not in flags:
        raise UsageError("the following arguments are required: model_tag")
    flags |= {name: _integer(name, flags[name]) for name in _INTEGERS if name in flags}
    numbers = {**_INTEGERS, **{name: flags[name] for name in _INTEGERS if name in flags}}
    spec = flags.get("speculative_config") or {}
    model, names = str(flags["model"]), flags.get("served_model_name")
    return Launch(
        model=model,
        served_names=[str(name) for name in names] if isinstance(names, list) else [model],
        host=str(flags.get("host", "127.0.0.1")),
        port=numbers["port"],
        max_model_len=numbers["max_model_len"],
        max_num_seqs=numbers["max_num_seqs"],
        method=_method(spec),
        k=int(spec.get("num_speculative_tokens", 0)),
        drafter=spec.get("model"),
        flags=flags,
    )


def _sglang_launch(argv: list[str]) -> Launch:
    flags, rest = _split(argv)
    if rest:
        raise UsageError(f"unrecognized arguments: {' '.join(rest)}")
    if "model_path" not in flags:
        raise UsageError("the following arguments are required: --model-path/--model")
    model, drafter = str(flags["model_path"]), flags.get("speculative_draft_model_path")
    verified = flags.get("speculative_num_draft_tokens") or flags.get("speculative_dflash_block_size")
    k = flags.get("speculative_dspark_block_size") or int(str(verified or 1)) - 1
    method = _SGLANG_METHODS.get(str(flags.get("speculative_algorithm", "none")))
    if method is None:
        raise UsageError(
            f"argument --speculative-algorithm: invalid choice: '{flags['speculative_algorithm']}'"
        )
    inside = method == "eagle" and drafter == model
    return Launch(
        model=model,
        served_names=[str(flags.get("served_model_name", model))],
        host=str(flags.get("host", "127.0.0.1")),
        port=int(str(flags.get("port", 30000))),
        max_model_len=flags.get("context_length"),
        max_num_seqs=int(str(flags.get("max_running_requests", 48))),
        method="mtp" if inside else method,
        k=int(str(k)) if method != "none" else 0,
        drafter=drafter,
        engine="sglang",
        flags=flags,
    )


def _method(spec: dict) -> str:
    if not spec:
        return "none"
    method = str(spec.get("method", "draft_model"))
    return "mtp" if method.endswith("_mtp") else method


def _integer(name: str, value: object) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgGtT]?)", str(value))
    if not match:
        raise UsageError(f"argument --{name.replace('_', '-')}: invalid int value: '{value}'")
    return int(float(match[1]) * _MULTIPLIER.get(match[2], 1))


def _split(argv: list[str]) -> tuple[dict[str, object], list[str]]:
    """Flags with typed values, and positional arguments."""
    flags: dict[str, object] = {}
    rest: list[str] = []
    words = list(argv)
    while words:
        word = words.pop(0)
        if not re.match(r"--?[A-Za-z]", word):
            rest.append(word)
            continue
        name, equals, value = word.partition("=")
        name = name.lstrip("-").replace("-", "_")
        name = _SHORT.get(name, name)
        if equals:
            flags[name] = [value] if name == "served_model_name" else _value(name, value)
        elif _BOOLEAN.match(name) or not words or re.match(r"--?[A-Za-z]", words[0]):
            flags[name] = True
        elif name == "served_model_name":
            count = next((i for i, w in enumerate(words) if w.startswith("-")), len(words))
            flags[name], words = words[:count], words[count:]
        else:
            flags[name] = _value(name, words.pop(0))
    return flags, rest


def _value(name: str, text: str) -> object:
    if name in _JSON:
        try:
            return json.loads(text)
        except ValueError:
            flag = name.replace("_", "-")
            where = f"argument --{flag}/-sc" if name == "speculative_config" else f"argument --{flag}"
            raise UsageError(
                f"{where}: Value {text} cannot be converted to <function loads at 0x7fbd6f7654e0>."
            ) from None
    if name in ("model", "host"):
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
