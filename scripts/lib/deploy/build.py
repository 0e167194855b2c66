"""The files of a deployment: compose.yaml, serve.sh, schedule.json and a README that says what they are."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scripts.lib.cell import Server
from scripts.lib.deploy.compose import FIRST_PORT, Deployed, compose_file, serve_command
from scripts.lib.deploy.schedule import EngineFacts, derive
from scripts.lib.deploy.scheduled import Scheduled, applicable, to_json, with_schedules
from scripts.lib.launched import devices_of, launch_of, resolved
from scripts.lib.launchers import typed
from scripts.lib.recommend.candidates import OperatingPoint, label
from scripts.lib.recommend.wishes import Wishes
from scripts.lib.sweep import Sweep
from scripts.lib.tables.markdown import paragraph

_VLLM_MAX_NUM_SEQS = 256
"""vLLM's value where neither a flag nor the hardware file says."""


@dataclass(frozen=True)
class Deployment:
    """File texts by name."""

    files: Mapping[str, str]


def build_deployment(
    recommendation: Mapping[str, Any], points: Sequence[OperatingPoint], sweep: Sweep, wishes: Wishes
) -> Deployment:
    """The files for the servers of the plans in `recommendation` (recommendation.json)."""
    servers = [
        (Server.from_axes(row), int(row["count"]))
        for plan in recommendation["plans"]
        for row in plan["servers"]
    ]
    deployed = _deployed(servers, sweep)
    schedules, notes = derive(
        [server for server, _ in servers], points, wishes.limits, lambda server: engine_facts(sweep, server)
    )
    compose, remarks = compose_file(deployed, wishes.image)
    machine = json.dumps({"schedules": to_json(schedules), "notes": notes}, indent=1, ensure_ascii=False)
    return Deployment(
        {
            "compose.yaml": compose,
            "serve.sh": serve_script(deployed),
            "schedule.json": machine + "\n",
            "README.md": "\n".join(_readme(recommendation, deployed, remarks, schedules, notes, sweep))
            + "\n",
        }
    )


def engine_facts(sweep: Sweep, server: Server) -> EngineFacts:
    """What decides how this server takes a schedule; an engine that is not known here takes none."""
    settings = resolved(sweep, server)
    if settings is None:
        return EngineFacts("an engine that this config does not know", None, 1, _VLLM_MAX_NUM_SEQS)
    slots = settings.flags.get("max-num-seqs") or settings.hardware.vllm_defaults.get("max_num_seqs")
    ranks = settings.flags.get("data-parallel-size", 1)
    return EngineFacts(
        settings.engine.kind,
        settings.engine.version,
        int(ranks) if str(ranks).isdigit() else 1,
        int(slots) if str(slots).isdigit() else _VLLM_MAX_NUM_SEQS,
    )


def _deployed(servers: Iterable[tuple[Server, int]], sweep: Sweep) -> list[Deployed]:
    """One entry per server to start, on ports and, where there are several on one machine, devices of its own."""
    servers = list(servers)
    total = {server.hardware: 0 for server, _ in servers}
    for server, count in servers:
        total[server.hardware] += count
    found: list[Deployed] = []
    following: dict[str, int] = {}
    for server, count in servers:
        devices = devices_of(sweep, server)
        base = _name(server, {one.name for one in found})
        for copy in range(count):
            first = following.get(server.hardware, 0)
            following[server.hardware] = first + devices
            alone = total[server.hardware] == 1
            found.append(
                Deployed(
                    _name(server, {one.name for one in found}, copy_of=base) if copy else base,
                    server,
                    FIRST_PORT + len(found),
                    devices,
                    None if alone else first,
                    launch_of(sweep, server),
                )
            )
    return found


def _name(server: Server, taken: Container[str], copy_of: str | None = None) -> str:
    """A name for compose and the shell that no other server has: with the engine, and a number, where it needs them.
    A copy has the name of the first one and a number."""
    short = f"{server.hardware}-{server.model}-{label(server)}-len{server.max_model_len}"
    long = f"{server.engine}-{short}"
    unnumbered = () if copy_of else (short, long)
    texts = itertools.chain(unnumbered, (f"{copy_of or long}-{number}" for number in itertools.count(2)))
    names = (re.sub(r"[^a-z0-9_-]+", "-", text.lower()) for text in texts)
    return next(name for name in names if name not in taken)


def serve_script(deployed: Sequence[Deployed]) -> str:
    """A POSIX shell script that starts one server as it was measured; secrets stay in the caller's environment."""
    lines = [
        "#!/bin/sh",
        "# Starts a server exactly as it was measured: sh serve.sh [NAME]. Run it in the folder you run snakemake in.",
    ]
    started = [one for one in deployed if one.launch and one.launch.argv]
    if not started:
        return "\n".join([*lines, "echo 'There is no server to start: see README.md' >&2", "exit 1"]) + "\n"
    lines.append(f'case "${{1:-{started[0].name}}}" in')
    for one in started:
        lines.append(f"{one.name})")
        lines.append(f"  exec {_as_measured(one)} ;;")
    names = " ".join(one.name for one in started)
    return "\n".join([*lines, f'*) echo "no server $1; there are: {names}" >&2; exit 2 ;;', "esac"]) + "\n"


def _readme(
    recommendation: Mapping[str, Any],
    deployed: Sequence[Deployed],
    remarks: Sequence[str],
    schedules: Sequence[Scheduled],
    notes: Sequence[str],
    sweep: Sweep,
) -> list[str]:
    lines = ["# Deployment", "", *recommendation["answer"]]
    for plan in recommendation["plans"]:
        lines += ["", f"## What to run for {plan['model']}", "", *plan["text"]]
    for one in deployed:
        lines += ["", f"## {one.name}", "", *_commands(one)]
    if remarks:
        lines += ["", "## Remarks on compose.yaml", "", *(f"- {words}" for words in remarks)]
    return [*lines, "", "## k by number of running requests", "", *_schedules(schedules, notes, sweep)]


def _as_measured(one: Deployed) -> str:
    """The command of a run for a POSIX shell, with its variables in front."""
    assert one.launch is not None
    variables, words = typed(one.launch, one.port)
    return shlex.join(["env", *(f"{name}={value}" for name, value in variables.items()), *words])


def _commands(one: Deployed) -> list[str]:
    if one.launch is None or not one.launch.argv:
        return ["There is no command: this workflow did not start that server."]
    lines = _code(shlex.join(serve_command(replace(one.launch, argv=_on_port(one.launch.argv, one.port)))))
    lines += ["", "As it was started to be measured:", "", *_code(_as_measured(one))]
    if one.launch.environment_names:
        lines += ["", f"Taken from your shell if set: {', '.join(one.launch.environment_names)}"]
    return lines


def _on_port(argv: Sequence[str], port: int) -> tuple[str, ...]:
    return tuple(part.replace("{port}", str(port)) for part in argv)


def _code(*lines: str) -> list[str]:
    return ["```", *lines, "```"]


def _schedules(schedules: Sequence[Scheduled], notes: Sequence[str], sweep: Sweep) -> list[str]:
    lines = [f"- {words}" for words in notes]
    planned = with_schedules(sweep, applicable(sweep, schedules))
    for schedule in schedules:
        launch = launch_of(planned, schedule.scheduled_server) if schedule.name in planned.methods else None
        parts = ", ".join(_range_words(first, last, k) for first, last, k in schedule.ranges)
        text = (
            f"{schedule.name}: {parts} requests running. Derived from the K curve; whether it does as well is not known until "
            "`snakemake --cores 1 verify_schedule` has measured it."
        )
        lines += [*([""] if lines else []), *paragraph(text)]
        if launch and launch.argv:
            lines += [
                "",
                *_code(shlex.join(serve_command(replace(launch, argv=_on_port(launch.argv, FIRST_PORT))))),
            ]
    return lines


def _range_words(first: int, last: int, k: int) -> str:
    return f"k {k} with {first}" + (f" to {last}" if last > first else "")
