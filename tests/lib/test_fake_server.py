"""The fake server says what it does: its counts, times, logs and faults are checked against each other."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fake_server.acceptance import Acceptance, expected_accepted
from tests.fake_server.cli import UsageError, parse_launch
from tests.fake_server.drafting import Drafting
from tests.fake_server.running import COMMAND, serving
from tests.fake_server.settings import Settings

CHAT = "/v1/chat/completions"
MTP3 = ("--speculative-config", '{"method": "mtp", "num_speculative_tokens": 3}')
FAST = {"ttft_s": 0.005, "step_s": 0.001}


def spec(method, k):
    return ("--speculative-config", json.dumps({"method": method, "num_speculative_tokens": k}))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    with serving(
        tmp_path_factory.mktemp("plain"), FAST | {"natural_tokens": 40}, "--max-model-len", "256"
    ) as server:
        yield server


@pytest.fixture(scope="module")
def drafting(tmp_path_factory):
    behaviour = FAST | {"acceptance": {"mtp": [0.8, 0.5, 0.3]}}
    with serving(
        tmp_path_factory.mktemp("mtp"),
        behaviour,
        "--max-model-len",
        "4096",
        *MTP3,
        VLLM_LOG_STATS_INTERVAL="0.2",
    ) as server:
        yield server


# Acceptance


@pytest.mark.parametrize("shares", [0.0, 0.8, 1.0, 0.37, [0.8, 0.5, 0.3], [1.0], [0.9, 0.9, 0.0], []])
@pytest.mark.parametrize("drafts", [1, 7, 1000])
def test_accepted_tokens_are_known_exactly(shares, drafts):
    acceptance, counts = Acceptance(shares, 3), [0, 0, 0]
    for _ in range(drafts):
        for position in range(acceptance.draw()):
            counts[position] += 1
    assert counts == expected_accepted(shares, 3, drafts)


def test_shares_come_out_as_asked():
    assert sum(expected_accepted(0.8, 3, 1000)) == 2400
    assert expected_accepted([0.8, 0.5, 0.3], 3, 1000) == [800, 500, 300]
    assert expected_accepted([0.8], 3, 10) == [8, 0, 0]


@pytest.mark.parametrize("shares", [1.1, [0.5, 0.6], [-0.1]])
def test_impossible_shares_are_refused(shares):
    with pytest.raises(ValueError, match="acceptance"):
        Acceptance(shares, 2)


# Command line and settings


def test_the_command_line_is_vllms():
    launch = parse_launch(
        [
            *("serve", "org/m", "--port=81", "--max-model-len", "2K", "--enforce-eager"),
            *("--served-model-name", "a", "b", "-tp", "2", "--kv-cache-dtype", "fp8"),
            *("--enable-auto-tool-choice", *spec("deepseek_mtp", 2)),
        ]
    )
    assert (launch.model, launch.port, launch.max_model_len) == ("org/m", 81, 2048)
    assert (launch.served_names, launch.method, launch.k) == (["a", "b"], "mtp", 2)
    assert launch.flags["enforce_eager"] is True
    assert launch.flags["enable_auto_tool_choice"] is True
    assert launch.flags["tensor_parallel_size"] == 2


@pytest.mark.parametrize(
    "argv", [[], ["m", "n"], ["m", "--speculative-config", '{"method":'], ["m", "--port", "x"]]
)
def test_a_bad_command_line_is_refused(argv):
    with pytest.raises(UsageError):
        parse_launch(argv)


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ({"tftt_s": 1}, "did you mean 'ttft_s'"),
        ({"faults": [{"kind": "http500"}]}, "did you mean 'http_500'"),
        ({"faults": [{"kind": "http_500", "form_request": 2}]}, "did you mean 'from_request'"),
        ({"ttft_s": "fast"}, "ttft_s is 'fast'"),
        ({"platform": "tpu"}, "cuda, cpu"),
        ({"acceptance": 2}, "acceptance 2"),
    ],
)
def test_a_wrong_behaviour_ends_the_start(tmp_path, behaviour, message):
    with serving(tmp_path, behaviour, *MTP3, ready=False) as server:
        assert server.process.wait(5) == 2
        assert message in server.log()


def test_settings_are_chosen_by_method_and_k(tmp_path):
    table = {"default": 10, "mtp": 20, "mtp:3": 30}
    for argv, tokens in [((), 10), (spec("mtp", 1), 20), (MTP3, 30), (spec("ngram", 3), 10)]:
        with serving(tmp_path, FAST | {"natural_tokens": table}, *argv) as server:
            assert server.chat("hello").usage["completion_tokens"] == tokens


def test_behaviour_from_a_file_and_start_by_module(tmp_path):
    path = tmp_path / "behaviour.json"
    path.write_text('{"faults": [{"kind": "port_busy"}]}')
    environment = {k: v for k, v in os.environ.items() if k != "FAKE_SERVER"} | {
        "FAKE_SERVER_FILE": str(path)
    }
    command = [COMMAND[0], "-m", "tests.fake_server", "serve", "m"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=10, check=False)
    assert run.returncode == 1
    assert "[Errno 98]" in run.stderr


# Counts and texts


def test_prompt_tokens_follow_the_rule_everywhere(plain):
    for content, tokens in [("one two three", 9), ("日本語 text", 10), ("", 6)]:
        messages = [{"role": "user", "content": content}]
        assert plain.post("/tokenize", {"messages": messages})[1]["count"] == tokens
        assert plain.chat(content, max_tokens=2).usage["prompt_tokens"] == tokens
    assert plain.post("/tokenize", {"prompt": "a b c"})[1]["count"] == 3
    status, answer = plain.post("/v1/completions", {"prompt": "a b c", "max_tokens": 2})
    assert (status, answer["usage"]["prompt_tokens"]) == (200, 3)


def test_an_answer_ends_by_itself_or_by_its_limits(plain):
    natural = plain.chat("tell me")
    assert (natural.finish_reason, natural.usage["completion_tokens"]) == ("stop", 40)
    assert len(natural.text.split()) == 39, "EOS is a token without text"
    cut = plain.chat("tell me", max_tokens=7)
    assert (cut.finish_reason, len(cut.text.split())) == ("length", 7)
    assert natural.text.startswith(cut.text)
    forced = plain.chat("tell me", max_completion_tokens=60, ignore_eos=True)
    assert (forced.finish_reason, len(forced.text.split())) == ("length", 60)
    longer = plain.chat("tell me", min_tokens=50, max_tokens=90)
    assert (longer.finish_reason, longer.usage["completion_tokens"]) == ("stop", 51)


def test_temperature_zero_repeats_and_sampling_follows_the_seed(plain):
    assert plain.chat("again").text == plain.chat("again").text
    assert plain.chat("again").text != plain.chat("other").text
    assert plain.chat("again", temperature=1, seed=5).text == plain.chat("again", temperature=1, seed=5).text
    assert plain.chat("again", temperature=1).text != plain.chat("again", temperature=1).text


def test_all_methods_say_the_same(plain, drafting):
    assert plain.chat("same", max_tokens=30).text == drafting.chat("same", max_tokens=30).text


def test_a_method_can_be_made_to_differ(tmp_path, plain):
    behaviour = FAST | {"natural_tokens": 40, "differ": {"mtp": {"from": 12, "contains": "river"}}}
    with serving(tmp_path, behaviour, *MTP3) as server:
        true, false = plain.chat("a river").text.split(), server.chat("a river").text.split()
        assert true[:12] == false[:12]
        assert true[12] != false[12]
        assert server.chat("a lake").text == plain.chat("a lake").text


def test_whole_answers_equal_streamed_ones(drafting):
    body = {"messages": [{"role": "user", "content": "whole"}], "temperature": 0, "max_tokens": 25}
    _, whole = drafting.post(CHAT, body)
    streamed = drafting.chat("whole", max_tokens=25)
    assert whole["choices"][0]["message"]["content"] == streamed.text
    assert whole["usage"]["completion_tokens"] == streamed.usage["completion_tokens"] == 25


def test_token_ids_come_per_chunk(drafting):
    stream = drafting.chat("count these", max_tokens=30, return_token_ids=True)
    ids = [chunk["choices"][0]["token_ids"] for chunk in stream.token_chunks]
    assert [len(i) for i in ids] == [len(delta.split()) for delta in stream.deltas]
    _, tokenized = drafting.post("/tokenize", {"prompt": stream.text})
    assert tokenized["tokens"] == [i for chunk in ids for i in chunk]
    assert len(stream.chunks[0]["prompt_token_ids"]) == stream.usage["prompt_tokens"]
    assert all(c["choices"][0]["token_ids"] is None for c in drafting.chat("x", max_tokens=3).token_chunks)


def test_thinking_and_given_answers(tmp_path):
    behaviour = FAST | {"thinking_tokens": 5, "natural_tokens": 10, "answers": {"capital": 'It is "Paris".'}}
    with serving(tmp_path, behaviour) as server:
        assert re.fullmatch(r"<think>( \S+){3} </think>( \S+){9}", server.chat("go").text)
        off = server.chat("capital of France?", chat_template_kwargs={"enable_thinking": False})
        assert (off.text, off.usage["completion_tokens"], off.finish_reason) == ('It is "Paris".', 4, "stop")
    with serving(tmp_path, behaviour, "--reasoning-parser", "nemotron_v3", *MTP3) as server:
        deltas = [c["choices"][0]["delta"] for c in server.chat("go").token_chunks]
        thoughts = "".join(delta.get("reasoning", "") for delta in deltas)
        assert len(thoughts.split()) == 5
        assert len("".join(delta.get("content", "") for delta in deltas).split()) == 9


def test_requests_that_vllm_refuses(plain):
    status, error = plain.post(
        CHAT, {"messages": [{"role": "user", "content": "w " * 200}], "max_tokens": 100}
    )
    assert (status, error["error"]["type"], error["error"]["param"]) == (
        400,
        "BadRequestError",
        "input_tokens",
    )
    assert error["error"]["message"].startswith(
        "This model's maximum context length is 256 tokens. However, you requested 100 output tokens and "
        "your prompt contains at least 157 input tokens, for a total of at least 257 tokens."
    )
    status, error = plain.post(CHAT, {"model": "nobody", "messages": []})
    assert (status, error["error"]["message"]) == (404, "The model `nobody` does not exist.")
    assert plain.post("/v1/completions", {"prompt": "x", "max_tokens": 0})[0] == 400
    assert plain.post("/v1/completions", {"prompt": "x", "max_tokens": 5, "min_tokens": 6})[0] == 400
    assert plain.get("/v1/chat/completions")[0] == 405
    assert plain.get("/nothing")[0] == 404


def test_the_small_endpoints(plain):
    assert plain.get("/health") == (200, "")
    assert json.loads(plain.get("/version")[1]) == {"version": "0.27.1"}
    (model,) = json.loads(plain.get("/v1/models")[1])["data"]
    assert (model["id"], model["max_model_len"]) == ("m", 256)


def test_the_openai_client_understands_it(drafting):
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{drafting.port}/v1", api_key="none")
    with client.chat.completions.create(
        model="m",
        messages=[{"role": "user", "content": "hello there"}],
        max_tokens=20,
        stream=True,
        stream_options={"include_usage": True},
        extra_body={"ignore_eos": True},
    ) as stream:
        chunks = list(stream)
    assert chunks[-1].usage.completion_tokens == 20
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert len(text.split()) == 20
    whole = client.completions.create(model="m", prompt="hello there", max_tokens=5)
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (2, 5)
    with pytest.raises(openai.NotFoundError):
        client.completions.create(model="x", prompt="hello")


# Times


def test_times_are_kept(tmp_path):
    behaviour = {"ttft_s": 0.05, "step_s": {"none": 0.001}}
    with serving(tmp_path, behaviour) as server:
        streams = [server.chat("time me", max_tokens=401, ignore_eos=True) for _ in range(4)]
    ttft_s, last_s = min(s.ttft_s for s in streams), min(s.times[-2] for s in streams)
    assert 0.05 <= ttft_s < 0.055
    assert 0.45 <= last_s < 0.465, "a clock that adds up its own lateness would lose more over 400 steps"


def test_steps_slow_down_with_company_and_the_rest_waits(tmp_path):
    behaviour = {"ttft_s": 0.01, "step_s": 0.005, "slope": 0.5}
    with serving(tmp_path, behaviour, "--max-num-seqs", "3") as server, ThreadPoolExecutor(4) as pool:
        alone = server.chat("x", max_tokens=21, ignore_eos=True).times[-2]
        asked = [pool.submit(server.chat, f"x {i}", max_tokens=200, ignore_eos=True) for i in range(4)]
        time.sleep(0.3)
        state = server.metrics()
        times = sorted(future.result().times[-2] for future in asked)
    # Lower bounds hold on any machine; how exact the times are is for the benchmarks to say.
    assert alone >= 0.01 + 20 * 0.005 - 0.001
    assert (state["vllm:num_requests_running"], state["vllm:num_requests_waiting"]) == (3, 1)
    assert times[0] >= 0.01 + 199 * 0.010 * 0.9, "three run: twice as slow"
    assert times[3] > times[0] + 0.5, "the fourth waited for a place"


def test_many_streams_at_once_keep_their_rate(tmp_path):
    streams, tokens, step_s = 32, 100, 0.008

    async def read(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = json.dumps({"prompt": "go", "max_tokens": tokens, "ignore_eos": True, "stream": True}).encode()
        writer.write(
            b"POST /v1/completions HTTP/1.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
            + body
        )
        data = await reader.read(-1)
        writer.close()
        return data.count(b'"text":"')

    async def read_all(port):
        started = time.perf_counter()
        counts = await asyncio.gather(*(read(port) for _ in range(streams)))
        return counts, time.perf_counter() - started

    with serving(tmp_path, {"ttft_s": 0.01, "step_s": step_s}) as server:
        counts, elapsed_s = asyncio.run(read_all(server.port))
    assert counts == [tokens] * streams
    assert 0.01 + (tokens - 1) * step_s <= elapsed_s


# Counters and logs


def test_metrics_equal_what_was_seen(tmp_path):
    behaviour = FAST | {"acceptance": {"mtp": [0.8, 0.5, 0.3]}}
    with serving(tmp_path, behaviour, *MTP3, VLLM_LOG_STATS_INTERVAL="0.15") as server:
        with ThreadPoolExecutor(4) as pool:
            streams = list(
                pool.map(
                    lambda i: server.chat(f"prompt number {i}", max_tokens=50, ignore_eos=True), range(12)
                )
            )
        seen = server.metrics()
        time.sleep(0.4)
        log = server.log()
    drafts = sum(len(s.token_chunks) - 1 for s in streams)
    accepted = expected_accepted([0.8, 0.5, 0.3], 3, drafts)
    total = "vllm:spec_decode_num_{}_total".format
    assert (seen[total("drafts")], seen[total("draft_tokens")]) == (drafts, 3 * drafts)
    assert seen[total("accepted_tokens")] == sum(accepted)
    per_position = total("accepted_tokens_per_pos")
    assert [seen[f'{per_position}{{position="{i}"}}'] for i in range(3)] == accepted
    assert seen["vllm:generation_tokens_total"] == 12 * 50
    assert seen["vllm:prompt_tokens_total"] == sum(s.usage["prompt_tokens"] for s in streams)
    assert seen['vllm:request_success_total{finished_reason="length"}'] == 12
    cut_off = 12 * 50 - 12 - drafts
    assert 0 <= sum(accepted) - cut_off <= 12 * 3, (
        "counters may only exceed what the last steps could not deliver"
    )
    lines = re.findall(r"Accepted: (\d+) tokens, Drafted: (\d+) tokens, Per-position", log)
    assert [sum(int(line[i]) for line in lines) for i in (0, 1)] == [sum(accepted), 3 * drafts]


def test_delivered_acceptance_can_be_counted_instead(tmp_path):
    behaviour = FAST | {"acceptance": 0.8, "acceptance_counts": "emitted"}
    with serving(tmp_path, behaviour, *MTP3) as server:
        streams = [server.chat(f"p{i}", max_tokens=10, ignore_eos=True) for i in range(5)]
        seen = server.metrics()
    chunks = [len(delta.split()) for s in streams for delta in s.deltas[1:]]
    assert seen["vllm:spec_decode_num_accepted_tokens_total"] == sum(chunks) - len(chunks)
    assert seen["vllm:spec_decode_num_drafts_total"] == len(chunks)


def test_throughput_lines_add_up_and_stop_when_idle(drafting):
    drafting.wait_for("Avg generation throughput")
    time.sleep(0.6)
    before, log_before = drafting.metrics(), drafting.log()
    drafting.chat("for the log", max_tokens=400, ignore_eos=True)
    time.sleep(0.7)
    after, log = drafting.metrics(), drafting.log()[len(log_before) :]
    lines = re.findall(
        r"Engine 000: Avg prompt throughput: ([\d.]+) tokens/s, Avg generation throughput: ([\d.]+)", log
    )
    generated = sum(float(line[1]) for line in lines) * 0.2
    assert generated == pytest.approx(400, rel=0.05)
    assert after["vllm:generation_tokens_total"] - before["vllm:generation_tokens_total"] == 400
    assert lines[-1] == ("0.0", "0.0"), "one line of zeros closes a busy stretch"
    time.sleep(0.5)
    assert drafting.log().count("Engine 000:") == (log_before + log).count("Engine 000:")


def test_prefix_cache_hits_whole_blocks(tmp_path):
    prompt = " ".join(f"w{i}" for i in range(40))
    for argv, hits in [((), 32), (("--no-enable-prefix-caching",), 0)]:
        with serving(tmp_path, FAST, *argv) as server:
            for _ in range(2):
                server.post("/v1/completions", {"prompt": prompt, "max_tokens": 1})
            assert server.metrics()["vllm:prefix_cache_hits_total"] == hits


def test_without_speculation_there_is_no_trace_of_it(plain):
    assert not [name for name in plain.metrics() if "spec_decode" in name]
    assert "speculative_config=None, tokenizer=" in plain.log()
    assert "SpecDecoding" not in plain.log()


def test_the_start_is_told_as_vllm_does(tmp_path):
    behaviour = {"kv_cache_tokens": 100000, "weights_gib": 59.16, "compile_s": 37.08, "init_s": 171.73}
    behaviour["startup_log"] = ["WARNING vllm.py:609 Model Runner V2 requires Triton"]
    with serving(
        tmp_path, behaviour, "--max-model-len", "8192", *spec("dflash", 5), "--max-num-seqs", "128"
    ) as server:
        log = server.log()
    head = r"(?m)^\((?:APIServer|EngineCore) pid=\d+\) INFO \d\d-\d\d \d\d:\d\d:\d\d \[[\w.]+:\d+\] "
    for line in [
        " ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.27.1$",
        r"non-default args: \{'model': 'm', 'port': 0, 'max_model_len': 8192, 'speculative_config': \{",
        r"Initializing a V1 LLM engine \(v0.27.1\) with config: model='m', "
        r"speculative_config=SpeculativeConfig\(method='dflash', model=None, num_spec_tokens=5\), "
        r".*max_seq_len=8192",
        r"Model loading took 59.16 GiB memory and 5.120000 seconds$",
        r"torch.compile took 37.08 s in total$",
        r"Available KV cache memory: 51.3 GiB$",
        r"GPU KV cache size: 100,000 tokens$",
        r"Maximum concurrency for 8,192 tokens per request: 12.21x$",
        r"init engine \(profile, create kv cache, warmup model\) took 171.73 s \(compilation: 37.08 s\)$",
    ]:
        assert re.search(head + line, log), line
    assert "max_num_scheduled_tokens is set to 7680 " in log, "8192 - (5 - 1) * 128"
    assert re.search(r"\(EngineCore pid=\d+\) WARNING .*Model Runner V2", log)
    assert re.search(r"(?m)^\(APIServer pid=\d+\) INFO:     Application startup complete\.$", log)


def test_every_request_has_an_access_line(tmp_path):
    with serving(tmp_path, FAST) as server:
        server.get("/health")
        server.chat("x", max_tokens=2)
        server.post(CHAT, {"model": "nobody"})
        log = server.log()
    for line in [
        'GET /health HTTP/1.1" 200 OK',
        f'POST {CHAT} HTTP/1.1" 200 OK',
        f'POST {CHAT} HTTP/1.1" 404 Not Found',
    ]:
        assert re.search(rf'INFO:     127\.0\.0\.1:\d+ - "{re.escape(line)}', log)


def test_a_healthy_end_is_noisy(tmp_path):
    with serving(tmp_path, FAST) as server:
        assert server.stop() == 0
        told = server.log().split("[shutdown] API server: shutdown triggered")
    assert len(told) == 2
    assert "ERROR" not in told[0]
    assert "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue." in told[1]
    assert told[1].rstrip().endswith("INFO:     Application shutdown complete.")


def test_a_client_that_goes_away_frees_its_place(tmp_path):
    with serving(tmp_path, {"ttft_s": 0.01, "step_s": 0.05}) as server:
        connection = socket.create_connection(("127.0.0.1", server.port))
        body = b'{"prompt": "x", "max_tokens": 1000, "ignore_eos": true, "stream": true}'
        connection.sendall(
            b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        connection.recv(1000)
        assert server.metrics()["vllm:num_requests_running"] == 1
        connection.close()
        time.sleep(0.2)
        assert server.metrics()["vllm:num_requests_running"] == 0


# k by number of running requests


def test_a_schedule_gives_each_number_of_requests_its_k_and_its_settings():
    schedule = [[3, 4, 1], [1, 2, 3], [6, 8, 0]]
    drafting = Drafting(3, Settings(step_s=0.3), schedule, lambda k: Settings(step_s=k / 10))
    assert [drafting.at(running).k for running in (0, 1, 2, 3, 4, 5, 6, 8, 9)] == [3, 3, 3, 1, 1, 1, 0, 0, 0]
    assert [drafting.at(running).seconds(running) for running in (1, 3, 6)] == [0.3, 0.1, 0.0]
    assert Drafting(3, Settings(), None, Settings).at(5).k == 3


def test_a_server_with_a_schedule_drafts_by_it(tmp_path):
    config = {"method": "mtp", "num_speculative_tokens": 3}
    config["num_speculative_tokens_per_batch_size"] = [[1, 1, 1], [2, 8, 3]]
    with serving(tmp_path, FAST | {"acceptance": 1.0}, "--speculative-config", json.dumps(config)) as server:
        server.chat("alone")
        counts = server.metrics()
    drafts, drafted = (counts[f"vllm:spec_decode_num_{what}_total"] for what in ("drafts", "draft_tokens"))
    assert drafted == drafts > 0
