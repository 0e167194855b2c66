"""Runs one server so that nothing of it outlives the process that asked for it. Linux only, standard library only.

    python guard.py --grace S --status FILE [--cidfile FILE] -- COMMAND ...     (its standard input is the lifeline)

The serve job holds the other end of the lifeline. When that end closes, for whatever reason (SIGKILL included), the
guard stops the server: SIGTERM to its main process, then SIGKILL to every descendant. As the subreaper it inherits
grandchildren that left the session, so none is missed. With --cidfile the container named there is removed as well.
A line `stop SECONDS` on the lifeline asks for the same with that grace. The exit status is the server's (128 + n for signal n).
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time

_PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
_POLL_S = 0.1


def prctl(option: int, value: int) -> None:
    """prctl(2). Raises OSError when the kernel refuses."""
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def children() -> dict[int, list[int]]:
    """Parent pid -> pids of its children, zombies included, for all processes visible here."""
    tree: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            tree.setdefault(parent, []).append(int(name))
    return tree


def descendants(pid: int) -> list[int]:
    """All processes below `pid`, in any session, nearest first."""
    tree = children()
    found, queue = [], list(tree.get(pid, []))
    while queue:
        child = queue.pop(0)
        found.append(child)
        queue += tree.get(child, [])
    return found


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def kill_descendants(pid: int, limit_s: float = 5.0) -> None:
    """SIGKILL everything below `pid` until nothing is left, reaping what this process inherits."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        for child in descendants(pid):
            _signal(child, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            return
        time.sleep(0.02)


def remove_container(cidfile: str) -> None:
    """`docker rm --force` the container whose id docker wrote to `cidfile`, if it got that far."""
    try:
        with open(cidfile, encoding="ascii") as file:
            container = file.read().strip()
    except OSError:
        return
    if container:
        subprocess.run(
            ["docker", "rm", "--force", "--volumes", container], stdin=subprocess.DEVNULL, check=False
        )


def stop(server: subprocess.Popen, grace_s: float) -> None:
    """Ask the server to end and wait `grace_s` for it."""
    server.terminate()
    try:
        server.wait(grace_s)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def watch(server: subprocess.Popen, grace_s: float) -> None:
    """Return when the server has ended: by itself, or because the lifeline closed or asked for it."""
    request = b""
    while server.poll() is None:
        readable, _, _ = select.select([0], [], [], _POLL_S)
        if not readable:
            continue
        data = os.read(0, 4096)
        request += data
        if not data:
            stop(server, grace_s)
        elif request.startswith(b"stop ") and request.endswith(b"\n"):
            stop(server, float(request.split()[1]))


def status_of(server: subprocess.Popen) -> int:
    """The exit status as a shell gives it: 128 + n for signal n."""
    return 128 - server.returncode if server.returncode < 0 else server.returncode


def tell(path: str, status: int) -> None:
    """Write the exit status of the server; it appears whole or not at all."""
    with open(path + ".part", "w", encoding="ascii") as file:
        file.write(str(status))
    os.replace(path + ".part", path)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--grace", type=float, required=True)
    parser.add_argument("--status", required=True)
    parser.add_argument("--cidfile")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)

    def child_setup() -> None:
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        # If the guard itself is killed, the kernel ends the server's main process.
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    try:
        server = subprocess.Popen(args.command, stdin=subprocess.DEVNULL, preexec_fn=child_setup)
    except OSError as error:
        print(f"cannot start {args.command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        return 127
    try:
        watch(server, args.grace)
        # Told at once: what is left of it may need seconds to go.
        tell(args.status, status_of(server))
    finally:
        kill_descendants(os.getpid())
        if args.cidfile:
            remove_container(args.cidfile)
    return status_of(server)


if __name__ == "__main__":
    sys.exit(main())
