from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.lib import probe
from scripts.lib.prompt_fit import (
    CannotFit,
    Fit,
    ScenarioFit,
    TokenCounter,
    fit_scenario,
    most_units,
    off_target,
)
from scripts.lib.scenario import load_scenario

# --- the search ------------------------------------------------------------------------------------------------------


def counted(sizes, base=10):
    """A count of `base` tokens plus those of the units, and the amounts that were asked for."""
    asked = []

    def count(units):
        asked.append(units)
        return base + sum(sizes[:units])

    return count, asked


def test_the_most_padding_that_does_not_exceed_the_target():
    count, _ = counted([1, 2, 1, 3, 1, 1] * 40)
    fit = most_units(count, 240, 128)
    assert fit.tokens == 128
    assert fit.tokens == count(fit.units)
    assert count(fit.units + 1) > 128


def test_long_prompts_are_approached_from_below_in_a_few_steps():
    count, asked = counted([1, 2, 1, 1] * 5000)
    fit = most_units(count, 20_000, 16_384)
    assert 0.998 * 16_384 <= fit.tokens <= 16_384
    assert len(asked) <= 10
    # A copy: counting again is noted in `asked` as well, and a list that grows is never read to its end.
    assert max(count(units) for units in tuple(asked)) <= 1.02 * 16_384


@pytest.mark.parametrize(
    ("sizes", "base", "target", "said"),
    [
        ([1] * 9, 140, 128, "has 140 tokens before any padding: shorten it or raise input_tokens (128)"),
        ([1] * 9, 10, 128, "has 19 tokens with all padding there is, input_tokens asks for 128"),
        ([9] * 99, 10, 35, "jumps from 28 tokens past 35 with one more word"),
    ],
)
def test_a_target_that_cannot_be_met_says_why(sizes, base, target, said):
    with pytest.raises(CannotFit) as error:
        most_units(counted(sizes, base)[0], len(sizes), target)
    assert said in str(error.value)


def test_a_prompt_that_is_a_little_too_long_is_near_enough_as_it_is():
    assert most_units(counted([1], base=130)[0], 1, 128) == Fit(0, 130)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=600), st.integers(1, 80), st.integers(1, 2000))
def test_what_is_found_is_within_two_percent_and_nothing_else_is(sizes, base, target):
    count, asked = counted(sizes, base)
    reachable = [count(units) for units in range(len(sizes) + 1)]
    asked.clear()
    try:
        fit = most_units(count, len(sizes), target)
    except CannotFit:
        assert not [tokens for tokens in reachable if 0.998 * target <= tokens <= target]
    else:
        assert abs(fit.tokens - target) <= 0.02 * target
        assert reachable[fit.units] == fit.tokens
    assert len(asked) < 120


# --- asking a server ---------------------------------------------------------------------------------------------------


class Server:
    """Counts words, five more for the template. `pages` are those it has; `asked` (path, body) pairs."""

    def __init__(self, pages=("/tokenize", "/v1/chat/completions"), status=404, usage=True):
        self.asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(handler):
                body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
                self.asked.append((handler.path, body))
                tokens = 5 + sum(len(message["content"].split()) for message in body["messages"])
                answer = (
                    {"count": tokens} if handler.path == "/tokenize" else {"usage": {"prompt_tokens": tokens}}
                )
                found = handler.path in pages
                handler.send_response(200 if found else status)
                handler.end_headers()
                handler.wfile.write(json.dumps(answer if found and usage else {}).encode())

            def log_message(handler, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=[0.02], daemon=True).start()
        self.counter = TokenCounter(
            f"http://127.0.0.1:{self.server.server_port}/v1", "m", "key", {"thinking": False}
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def paths(self):
        return [path for path, _ in self.asked]


@pytest.fixture
def scenario(tmp_path):
    def make(**changes):
        content = {
            "description": "x",
            "prompts": {"a": "one two three", "b": "four five"},
            "warmup_prompts": {"a": "six seven"},
            "input_tokens": 50,
            "output": {"max_tokens": 4},
        }
        path = tmp_path / "some.yaml"
        path.write_text(yaml.safe_dump(content | changes))
        return load_scenario(path)

    return make


COUNTS = {"warmup": 1, "measure": 4}


def test_prompts_get_exactly_the_wanted_length_and_only_those_in_use_are_fitted(scenario, tmp_path):
    made = scenario()
    with Server() as server:
        fit = fit_scenario(made, COUNTS, server.counter, tmp_path / "fits.json")
        assert set(server.paths()) == {"/tokenize"}
        assert all(body["chat_template_kwargs"] == {"thinking": False} for _, body in server.asked)
    assert (fit.target_tokens, fit.counted_by) == (50, "tokenize")
    assert {key: found.tokens for key, found in fit.prompts.items()} == {
        "warmup/a": 50,
        "measure/a": 50,
        "measure/b": 50,
    }
    for phase in COUNTS:
        for request in made.requests(phase, 4, "salt", fit.sizes):
            (message,) = request.body["messages"]
            assert 5 + len(message["content"].split()) == 50
    with Server() as server:
        one = fit_scenario(made, {"measure": 1}, server.counter, tmp_path / "others.json")
    assert list(one.prompts) == ["measure/a"]


def test_later_cells_of_a_boot_take_over_what_was_found(scenario, tmp_path):
    made, kept = scenario(), tmp_path / "fits.json"
    with Server() as server:
        first = fit_scenario(made, {"measure": 1}, server.counter, kept)
        asked = len(server.asked)
        again = fit_scenario(made, COUNTS, server.counter, kept)
        more = [body["messages"][0]["content"] for _, body in server.asked[asked:]]
        assert not any("one two three" in text for text in more)
        assert again.prompts["measure/a"] == first.prompts["measure/a"]
        asked = len(server.asked)
        assert fit_scenario(made, COUNTS, server.counter, kept) == again
        assert len(server.asked) == asked + 1, "it only sees that the server counts"
        # Another scenario in the same file, and a file that a kill cut short.
        assert fit_scenario(scenario(input_tokens=60), COUNTS, server.counter, kept).target_tokens == 60
        assert fit_scenario(made, COUNTS, server.counter, kept) == again
        kept.write_text(kept.read_text()[:20])
        assert fit_scenario(made, COUNTS, server.counter, kept) == again


@pytest.mark.parametrize("status", [404, 400, 501])
def test_without_tokenize_a_completion_counts_and_leaves_no_measured_prompt_in_the_cache(
    scenario, tmp_path, status
):
    made = scenario()
    with Server(pages=("/v1/chat/completions",), status=status) as server:
        fit = fit_scenario(made, COUNTS, server.counter, tmp_path / "fits.json")
        sent = [body for path, body in server.asked if path != "/tokenize"]
    assert fit.counted_by == "completion"
    assert fit.prompts["measure/a"].tokens == 50
    assert all(body["max_tokens"] == 1 for body in sent)
    starts = {body["messages"][0]["content"].split()[0] for body in sent}
    requests = [request for phase in COUNTS for request in made.requests(phase, 8, "salt", fit.sizes)]
    assert not starts & {request.body["messages"][0]["content"].split()[0] for request in requests}


def test_a_study_of_the_cache_is_not_spoilt_by_counting(scenario, tmp_path):
    made = scenario(nonce=False)
    with Server(pages=("/v1/chat/completions",)) as server:
        with pytest.raises(CannotFit, match="nonce: false into its prefix cache"):
            fit_scenario(made, COUNTS, server.counter, tmp_path / "fits.json")
    with Server() as server:
        assert (
            fit_scenario(made, COUNTS, server.counter, tmp_path / "fits.json").prompts["measure/b"].tokens
            == 50
        )


def test_the_reason_names_prompt_and_scenario(scenario, tmp_path):
    with Server() as server, pytest.raises(CannotFit) as error:
        fit_scenario(scenario(input_tokens=7), COUNTS, server.counter, tmp_path / "fits.json")
    assert "prompt a of some has 8 tokens before any padding" in str(error.value)


def test_a_server_that_does_not_tell_is_not_waited_for(scenario, tmp_path):
    with Server(usage=False) as server, pytest.raises(CannotFit, match="do not say how many tokens"):
        fit_scenario(scenario(), COUNTS, server.counter, tmp_path / "fits.json")
    with (
        Server(pages=(), status=403) as server,
        pytest.raises(CannotFit, match="does not count the tokens .* HTTP 403"),
    ):
        fit_scenario(scenario(), COUNTS, server.counter, tmp_path / "fits.json")


def test_a_server_that_lost_its_engine_is_lost_and_not_unfit(scenario, tmp_path):
    with Server(pages=(), status=500) as server, pytest.raises(probe.Unreachable):
        fit_scenario(scenario(), COUNTS, server.counter, tmp_path / "fits.json")
    with pytest.raises(probe.Unreachable):
        fit_scenario(scenario(), COUNTS, server.counter, tmp_path / "fits.json")


def test_usage_is_held_against_the_target():
    fit = ScenarioFit(128, "tokenize", {})
    assert off_target(fit, [126, 128, 130, None]) is None
    assert "125, 131 tokens, where input_tokens 128 allows 126 to 130" in off_target(fit, [131, 128, 125])
    assert off_target(None, [1, 2, 3]) is None
