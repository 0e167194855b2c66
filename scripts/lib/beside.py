"""A second server beside the first on the same device: what a method's `beside` key makes of it. Planning only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from scripts.lib.cell import Server
from scripts.lib.config import ConfigError
from scripts.lib.device_request import device_request
from scripts.lib.feasibility import Finding, check_server
from scripts.lib.feasibility_memory import SHARE_FLAGS, memory_share
from scripts.lib.launch import DeviceRequest, Launch
from scripts.lib.methods import Beside, Method
from scripts.lib.resolve import Resolved, resolve

PartOf = Callable[[str, str, str], Any]


def companion(
    server: Server, beside: Beside, part: PartOf, overrides: Iterable[Mapping[str, Any]]
) -> Resolved:
    """The second server, resolved as if it were one of the sweep, with its own settings last. `part` loads a named file.

    Raises ConfigError for one that the workflow would not start.
    """
    place = f"config: method {server.method}: beside"
    other = Server(
        server.hardware,
        beside.engine or server.engine,
        beside.model,
        beside.method,
        beside.k,
        beside.max_model_len or server.max_model_len,
    )
    engine = part("engine", other.engine, f"{place}.engine")
    for name, launcher in (
        (server.engine, part("engine", server.engine, place).launcher),
        (other.engine, engine.launcher),
    ):
        if launcher == "external":
            raise ConfigError(f"{place}: {name} is a server that others run; both must be started here")
    ks = (beside.k,) if beside.k else ()
    method = Method(
        beside.method, beside.method, ks, beside.speculative_config, beside.flags, beside.environment
    )
    own = {"when": {}, "flags": beside.flags, "environment": beside.environment}
    return resolve(
        other,
        part("hardware", server.hardware, place),
        engine,
        part("model", beside.model, f"{place}.model"),
        method,
        [*overrides, own],
    )


def findings(first: Resolved, second: Resolved) -> tuple[Finding, ...]:
    """What speaks against the second server, and against both on one device."""
    own = tuple(replace(found, message=f"beside: {found.message}") for found in check_server(second))
    return (*own, *_memory(first, second))


def _memory(first: Resolved, second: Resolved) -> tuple[Finding, ...]:
    if first.hardware.accelerator == "cpu":
        return ()
    shares = []
    for resolved in (first, second):
        flag = SHARE_FLAGS[resolved.engine.kind]
        if flag not in resolved.flags:
            message = f"{resolved.server.model}: {flag} is not given, and by itself a server takes nearly all; give it to both"
            return (Finding("beside-memory", "infeasible", message),)
        shares.append(memory_share(resolved) or 0.0)
    limit = first.hardware.max_gpu_memory_utilization or 1.0
    if sum(shares) <= limit:
        return ()
    asked = " + ".join(f"{share:g}" for share in shares)
    message = (
        f"the servers' shares of memory {asked} are over {limit:g}, the most for all on {first.hardware.name}"
    )
    return (Finding("beside-memory", "infeasible", message),)


def shared_device(first: Resolved, second: Resolved) -> DeviceRequest:
    """What both together need of the machine."""
    one, two = device_request(first), device_request(second)
    shares = (one.memory_share, two.memory_share)
    together = None if None in shares else sum(shares)
    return replace(one, gpus=max(one.gpus, two.gpus), memory_share=together)


def together(first: Launch, second: Launch, device: DeviceRequest) -> Launch:
    """The launch of both."""
    needs = tuple(dict.fromkeys((*first.needs, *second.needs)))
    return replace(first, beside=second, device=device, needs=needs)


def identity(second: Mapping[str, Any], beside: Beside, scenario_sha256: str) -> dict[str, Any]:
    """What of the second server decides a cell's outcome: its own identity, and the load it is kept under."""
    server = {name: value for name, value in second.items() if name not in ("protocol", "epoch", "hardware")}
    load = (
        {"scenario": scenario_sha256, "concurrency": beside.concurrency}
        if beside.concurrency
        else {"concurrency": 0}
    )
    return server | load
