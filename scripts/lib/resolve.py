"""One server with everything its parts say about it: flags, environment, speculative config."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scripts.lib.cell import BASELINE, Server
from scripts.lib.merge import matches, merge_environment, merge_flags
from scripts.lib.methods import METHOD_KINDS, Method
from scripts.lib.parts import Drafter, Engine, Hardware, Model


@dataclass(frozen=True)
class Resolved:
    """A server after merging. `flags` have no speculative config: that is `speculative`, None for the
    baseline.
    """

    server: Server
    hardware: Hardware
    engine: Engine
    model: Model
    method: Method
    flags: Mapping[str, Any]
    environment: Mapping[str, str]
    speculative: Mapping[str, Any] | None
    drafter: Drafter | None

    @property
    def synthetic(self) -> bool:
        """Whether the engine is told to make acceptance up."""
        return (self.speculative or {}).get("rejection_sample_method") == "synthetic"

    @property
    def needs(self) -> tuple[str, ...]:
        """Files that must exist before this server starts, without repeats."""
        drafter = self.drafter.needs if self.drafter else ()
        method = self.engine.method_needs.get(self.method.kind, ())
        image = (f"{self.engine.image_folder}/ready.json",) if self.engine.image_folder else ()
        return tuple(dict.fromkeys((*self.engine.needs, *image, *method, *self.model.needs, *drafter)))


def resolve(
    server: Server,
    hardware: Hardware,
    engine: Engine,
    model: Model,
    method: Method,
    overrides: Iterable[Mapping[str, Any]] = (),
) -> Resolved:
    """Merge hardware < model < engine < method < `overrides` (the config's own) for one server."""
    axes = vars(server) | {"engine_kind": engine.kind, "method": method.stands_for or server.method}
    drafter = model.drafters.get(method.kind) if METHOD_KINDS[method.kind].drafter else None
    own_keys = _head_keys(model) if method.kind == "mtp" else _drafter_keys(drafter)
    levels = [
        {"flags": {"speculative-config": own_keys}},
        *_levels(hardware, axes),
        *_levels(model, axes),
        *_levels(engine, axes),
        {"flags": method.flags, "environment": method.environment},
        {"flags": {"speculative-config": method.speculative_config}},
        *(override for override in overrides if matches(override["when"], axes)),
    ]
    flags = merge_flags(level.get("flags", {}) for level in levels)
    keys = flags.pop("speculative-config", {})
    speculative = None
    if method.kind != BASELINE:
        speculative = {**keys, "method": method.kind, "num_speculative_tokens": server.k}
    environment = merge_environment(level.get("environment", {}) for level in levels)
    return Resolved(server, hardware, engine, model, method, flags, environment, speculative, drafter)


def _levels(part: Hardware | Model | Engine, axes: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    own: Mapping[str, Any] = {"flags": part.flags, "environment": part.environment}
    return [own, *(override for override in part.overrides if matches(override["when"], axes))]


def _drafter_keys(drafter: Drafter | None) -> dict[str, Any]:
    if drafter is None:
        return {}
    revision = {"revision": drafter.hub_revision} if drafter.hub_revision else {}
    return {"model": drafter.model} | revision


def _head_keys(model: Model) -> dict[str, Any]:
    """A head inside the target is of the target's revision: by themselves vLLM and SGLang take it from the branch main."""
    return {"revision": model.hub_revision} if model.hub_revision else {}
