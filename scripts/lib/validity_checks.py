"""All checks of validity.py, in the order in which their reasons stand."""

from __future__ import annotations

from scripts.lib import validity_conditions as conditions
from scripts.lib import validity_requests as requests

CHECKS = (
    requests.incomplete,
    requests.no_tokens,
    requests.truncated,
    requests.short_window,
    requests.few_requests,
    requests.partial_load,
    requests.stalled,
    requests.queueing,
    requests.preemptions,
    requests.prefix_hits,
    requests.degenerate,
    conditions.acceptance_disagrees,
    conditions.too_fast,
    conditions.engine_error,
    conditions.compiled_in_window,
    conditions.client_lag,
    conditions.foreign_load,
    conditions.cold_compile_cache,
    conditions.unequal_requests,
    conditions.unfair_settings,
)
