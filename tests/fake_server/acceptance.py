"""How many draft tokens a step accepts: a low-discrepancy sequence whose sums are known exactly."""

from __future__ import annotations

from fractions import Fraction


class Acceptance:
    """Draws the accepted length of one draft after another.

    A number is the share of drafted tokens that are accepted. A list holds, per position, the share of drafts
    accepted there; it never rises, because a token is only accepted after the one before it.
    Raises ValueError for a share outside [0, 1] or a rising list.
    """

    def __init__(self, shares: float | list[float], k: int) -> None:
        self.k = k
        self._chain = _chain(shares, k)
        self._sums = [0] * len(self._chain)

    def draw(self) -> int:
        """The accepted length of the next draft, 0 to k."""
        accepted = 0
        for i, (base, numerator, denominator) in enumerate(self._chain):
            total = self._sums[i] + numerator
            if total >= denominator:
                self._sums[i] = total - denominator
                accepted += base + 1
            else:
                self._sums[i] = total
                return accepted + base
        return accepted


def _chain(shares: float | list[float], k: int) -> list[tuple[int, int, int]]:
    """Accumulators (base, numerator, denominator): each adds base, and one more with the given frequency; the
    next one only moves when the one before added its one."""
    if isinstance(shares, list):
        exact = [Fraction(str(share)) for share in shares[:k]]
        if any(not 0 <= share <= 1 for share in exact) or sorted(exact, reverse=True) != exact:
            raise ValueError(f"acceptance {shares}: shares lie in [0, 1] and never rise with the position")
        chain, before = [], Fraction(1)
        for share in exact:
            if share == 0:
                break
            ratio = share / before
            chain.append((0, ratio.numerator, ratio.denominator))
            before = share
        return chain
    rate = Fraction(str(shares))
    if not 0 <= rate <= 1:
        raise ValueError(f"acceptance {shares}: a share lies in [0, 1]")
    mean = rate * k
    base, rest = divmod(mean, 1)
    return [(int(base), rest.numerator, rest.denominator)] if k else []


def expected_accepted(shares: float | list[float], k: int, drafts: int) -> list[int]:
    """Accepted tokens per position after `drafts` drafts of a fresh server, exactly (k numbers).

    The whole is their sum; for a number it equals floor(shares * k * drafts).
    """
    counts = [0] * k
    if isinstance(shares, list):
        reached = drafts
        for position, (_, numerator, denominator) in enumerate(_chain(shares, k)):
            reached = reached * numerator // denominator
            counts[position] = reached
        return counts
    for base, numerator, denominator in _chain(shares, k):
        for position in range(base):
            counts[position] = drafts
        if base < k:
            counts[base] = drafts * numerator // denominator
    return counts
