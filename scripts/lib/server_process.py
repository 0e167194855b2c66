"""One server process (or container, or somebody else's server): start it, see whether it lives, stop all of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from scripts.lib import guard, launchers, progress
from scripts.lib.launch import HUB_CACHE, Launch
from scripts.lib.probe import free_port

_FORCED_S = 10.0
_VOLATILE = re.compile(rb"\d\d:\d\d:\d\d(?:[.,]\d+)?|\d+\.\d+\.\d+\.\d+:\d+")


class ServerProcess:
    """A launched server under its guard. Create it with `start`; `stop` may be called any number of times."""

    def __init__(
        self, process: subprocess.Popen, port: int, log: Path, command: launchers.Command, status: Path
    ):
        self._process = process
        self._status = status
        self.port = port
        self.log = log
        self.command = command
        self.base_url = f"http://127.0.0.1:{port}/v1"

    @classmethod
    def start(
        cls, launch: Launch, log: Path, scratch: Path, root: Path, visible_devices: str | None = None
    ) -> ServerProcess:
        """Start `launch` on a free port with stdout and stderr in order in `log`. It sees the GPUs that `visible_devices` lists,
        all for None.

        Raises OSError when the guard cannot be started; a missing engine command ends up in the log with status 127.
        """
        port = free_port()
        if launch.container and any(HUB_CACHE in mount for mount in launch.container.mounts):
            _make_hub_cache()
        cidfile = scratch / f"{log.stem}.cid"
        cidfile.unlink(missing_ok=True)
        command = launchers.command(launch, port, os.environ, str(cidfile), str(root), visible_devices)
        status = scratch / f"{log.stem}.status"
        status.unlink(missing_ok=True)
        argv = [sys.executable, "-S", "-E", guard.__file__, "--grace", "3", "--status", str(status)]
        if command.cidfile:
            argv += ["--cidfile", command.cidfile]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*argv, "--", *command.argv],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=command.environment,
                start_new_session=True,
            )
        return cls(process, port, log, command, status)

    @property
    def exit_status(self) -> int | None:
        """The server's exit status (128 + n for signal n), None while it lives; known before the last of its children is gone."""
        try:
            return int(self._status.read_text(encoding="ascii"))
        except FileNotFoundError:
            return self._process.poll()

    @property
    def container_id(self) -> str | None:
        if self.command.cidfile is None:
            return None
        try:
            return Path(self.command.cidfile).read_text(encoding="ascii").strip() or None
        except OSError:
            return None

    def stop(self, grace_s: float) -> None:
        """SIGTERM, `grace_s` later SIGKILL, and no container of it left afterwards; `leave_nothing` finds what escaped."""
        if self._process.poll() is None and self._process.stdin:
            try:
                self._process.stdin.write(f"stop {grace_s}\n".encode())
                self._process.stdin.flush()
            except BrokenPipeError:
                pass
            try:
                self._process.wait(grace_s + _FORCED_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._process.stdin:
            self._process.stdin.close()
        if self.command.cidfile:
            guard.remove_container(self.command.cidfile)


def _make_hub_cache() -> None:
    """apptainer refuses to mount a folder that is not there, docker makes it root's."""
    try:
        os.makedirs(os.path.expanduser(launchers.hub_cache(os.environ)), exist_ok=True)
    except OSError as error:
        progress.say(f"HF_HOME cannot be made: {error}")


def leave_nothing() -> None:
    """Kill every process below this one. Call it when all its servers are stopped: only after a killed guard is anything left,
    since its orphans come to this process, their subreaper."""
    guard.kill_descendants(os.getpid())


def image_identity(container_id: str) -> dict[str, str | None]:
    """Image id and repository digest of a running container, asked of docker; None where docker does not say."""

    def inspect(*arguments: str) -> str | None:
        try:
            answer = subprocess.run(
                ["docker", *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=30,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return answer.stdout.strip() or None

    image = inspect("inspect", "--format", "{{.Image}}", container_id)
    digest = image and inspect("image", "inspect", "--format", "{{index .RepoDigests 0}}", image)
    return {"image_id": image, "image_digest": digest}


def pulled_identity(image_file: str) -> dict[str, str | None]:
    """The same of an image file: its digest as it was taken when the workflow pulled it, None for a file of the user's."""
    try:
        facts = json.loads(Path(image_file).with_name("ready.json").read_text(encoding="utf-8"))
        return {"image_id": None, "image_digest": f"sha256:{facts['sha256']}"}
    except (OSError, ValueError, KeyError, TypeError):
        return {"image_id": None, "image_digest": None}


class LogWatch:
    """Whether a growing log says anything new. A server that hangs may log for ever: our own health checks, or one
    warning every minute. Only a line that was not there before, times and peers aside, counts as movement."""

    def __init__(self, log: Path):
        self._log = log
        self._offset = 0
        self._seen: set[int] = set()
        self._moved = time.monotonic()

    def still_for(self) -> float:
        """Seconds since the log last said something new."""
        try:
            with self._log.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            data = b""
        self._offset += len(data)
        for line in re.split(rb"[\r\n]+", data):
            mark = hash(_VOLATILE.sub(b"", line))
            if line.strip() and mark not in self._seen:
                self._seen.add(mark)
                self._moved = time.monotonic()
        return time.monotonic() - self._moved


def last_words(log: Path, width: int = 80) -> str:
    """The last non-empty line of a growing log, shortened, for a progress line."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4096))
            lines = file.read().decode(errors="replace").replace("\r", "\n").split("\n")
    except OSError:
        return ""
    text = next((line.strip() for line in reversed(lines) if line.strip()), "")
    text = text.partition("] ")[2] or text
    return text[:width]
