"""What pip's output says: how far an installation is, and why one failed."""

from __future__ import annotations

import re

_PACKAGE = re.compile(r"^(?:Collecting|Processing|Requirement already satisfied:) ", re.MULTILINE)
_DOWNLOAD = re.compile(
    r"^ *Downloading (?P<file>\S+) \((?P<size>[\d.]+) (?P<unit>bytes|kB|MB|GB)\)", re.MULTILINE
)
_MB = {"bytes": 1e-6, "kB": 1e-3, "MB": 1.0, "GB": 1e3}
_NO_NETWORK = (
    "NewConnectionError",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Network is unreachable",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "Read timed out",
    "Connection refused",
    "Connection reset by peer",
    "ProxyError",
)
_MISSING = re.compile(r"^ERROR: No matching distribution found for (?P<requirement>.+)$", re.MULTILINE)
_ERROR = re.compile(r"^\s*(?:ERROR|error): (?P<text>.+)$", re.MULTILINE)


def progress(output: str, packages: int) -> str:
    """How far `pip install` of so many packages is, from its output so far (progress bars off)."""
    if re.search(r"^Successfully installed ", output, re.MULTILINE):
        return "installed"
    if re.search(r"^Installing collected packages: ", output, re.MULTILINE):
        return f"unpacking {packages} packages" if packages > 1 else "unpacking"
    downloads = list(_DOWNLOAD.finditer(output))
    fetched = min(len(_PACKAGE.findall(output)), packages)
    total_mb = sum(float(match["size"]) * _MB[match["unit"]] for match in downloads)
    text = f"fetching package {fetched} of {packages}" if packages > 1 else "fetching"
    if not downloads:
        return text
    last = downloads[-1]
    return f"{text}, {total_mb:,.0f} MB so far (now {_short(last['file'])}, {last['size']} {last['unit']})"


def no_network(output: str) -> bool:
    """Whether pip could not reach a package index (and has no other that answered)."""
    return any(sign in output for sign in _NO_NETWORK)


def missing(output: str) -> str | None:
    """The requirement for which pip found no distribution, if that is why it failed."""
    match = _MISSING.search(output)
    return match["requirement"].strip() if match else None


def failure(output: str) -> str:
    """Why pip failed, in one sentence with the remedy."""
    if "No space left on device" in output:
        return "the disk is full. Free some space under resources/, in pip's cache and in the temporary folder (TMPDIR)."
    if no_network(output):
        return (
            "pip cannot reach its package index. Check the network and pip's settings (`pip config list`: index-url, proxy, "
            "cert), then run the same command again; what is half-built starts over."
        )
    if requirement := missing(output):
        return (
            f"pip's package index offers no {requirement} for this Python and platform. Check `pip config list` (a mirror may "
            f"lag behind), or use another Python (`make sweep PYTHON=python3.12` after removing .venv)."
        )
    errors = _ERROR.findall(output)
    return f"pip failed: {errors[-1].strip()}" if errors else "pip failed without saying why."


def _short(file: str) -> str:
    name = file.rsplit("/", 1)[-1]
    return "-".join(name.split("-")[:2]) if name.endswith(".whl") else name
