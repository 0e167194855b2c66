"""A stand-in inference server of known truth, started exactly like `vllm serve`.

    python tests/fake_server serve MODEL --port 8000 --max-model-len 2048 \\
        --speculative-config '{"method": "mtp", "num_speculative_tokens": 3}'

With `sglang.launch_server` as its first word the command line, log, pages and counters are SGLang's (0.5.15):

    python tests/fake_server sglang.launch_server --model-path MODEL --context-length 2048 \\
        --speculative-algorithm NGRAM --speculative-num-draft-tokens 4

Its /health answers after a second, its requests are counted when they end, and its decode lines come every --decode-log-interval steps.

Otherwise the command line is vLLM's (`--model M` or `serve M` or `M`; unknown flags are tolerated and echoed; host
127.0.0.1 unless given, port 0 takes a free one). Behaviour comes from a JSON object in the environment
variable FAKE_SERVER, or in the file that FAKE_SERVER_FILE names. Unknown keys are refused with exit code 2.

Settings, with their defaults. Every value except `answers` and `faults` may be a table by method, so that
one engine definition serves a whole matrix: {"none": 0.01, "mtp": 0.012, "mtp:3": 0.013, "default": 0.01},
where "method:k" wins over "method" and that over "default".

  startup_s 0               from start to ready, on top of Python's own ~0.15 s; the port answers only when
                            ready
  ttft_s 0.02               from the last byte of the request to the first token
  prefill_s_per_token 0     more of it for every prompt token that no cached prefix covers
  step_s 0.01, slope 0      one decode step of one request takes step_s * (1 + slope * (running - 1))
                            With num_speculative_tokens_per_batch_size in the speculative config a step is one
                            of the k that the number of running requests gives, with that k's settings
  acceptance 0              a number: accepted / drafted tokens, exactly. Or a list: the share of drafts
                            accepted at each position, never rising, as vLLM reports it; positions missing
                            from it are 0
  acceptance_counts "drawn" what counters and log say of a draft that the end of its request cuts off:
                            "drawn" all that was accepted, as vLLM does, or "emitted" what was delivered
  natural_tokens [48, 192]  tokens until EOS, itself included: a number, or a range in which the prompt's
                            hash picks
  thinking_tokens 0         reasoning in front, unless chat_template_kwargs.enable_thinking is false:
                            between <think> tags, or as delta.reasoning when --reasoning-parser is given
  answers {}                {"capital of France": "It is Paris."}: the answer to prompts that contain the
                            key
  differ null               n, or {"from": n, "contains": "text"}: output differs from other methods' from
                            token n on
  platform "cuda"           or "cpu": which start-up lines there are
  kv_cache_tokens 90112, kv_available_gib 51.3, weights_gib 15.0, weights_s 5.12, compile_s 0 (0: no line),
  capture_s 21, capture_gib 0.8, init_s 2.02  what the log says; a longer context than the cache is fatal
  block_size 16, model_max_len 8192  the latter without --max-model-len
  startup_log []            more lines, each "LEVEL file.py:12 text" or raw text
  routes true               list the routes;  shutdown_error true  end with EngineDeadError, as healthy runs
                            do
  engine_processes 0        children, each in a session of its own, ignoring SIGTERM and outliving a killed
                            server; their argv holds VLLM::EngineCore or VLLM::Worker_TPn, port=N and
                            parent=PID
  preempt_every 0           count one preemption at every n-th request
  faults []                 see below

The interval of the periodic lines is VLLM_LOG_STATS_INTERVAL seconds (10), fractions allowed.

Known truth
- Prompt tokens: a run of ASCII without spaces is one token, any other visible character one. A chat adds 4
  per message and 2. /tokenize and usage agree.
- The first token comes alone at ttft_s, then one chunk of 1 + accepted tokens per step, never beyond the
  end. The clock is absolute: step j is due at ttft_s + j * step_s after the arrival, however late the steps
  before it were.
- Every step but the first token's is a draft when k > 0. Accepted lengths are drawn by one accumulator over
  all drafts of the server in order: acceptance.expected_accepted gives the counts per position after n
  drafts.
- At temperature 0 the text depends on the prompt alone, not on the method (see `differ`); otherwise also on
  the seed, or without one on the request's number. One word is one token; EOS is one more, without text.
- Prefix cache: full blocks of earlier prompts, never evicted, at most prompt - 1 tokens; off with
  --no-enable-prefix-caching. Requests beyond --max-num-seqs (256) wait in order of arrival.

Faults: {"kind": ..., parameters, conditions}. Conditions, all optional: method, k, max_model_len (a value
or a list); and for faults at a request: concurrency (at least so many in flight, this one included),
from_request (the n-th completion of this boot; 1), every (each n-th from there on; 1), times (at most so
often), contains (text in the prompt). once: a marker file; the fault is off when it exists, and creates it
when it strikes, so that the next boot is healthy.

  never_ready {log: true}   health 503 for ever, the log moving or silent
  slow_start {s: 3, log: true}  so many seconds more, the log moving or silent
  die_at_start {file, cause, exit_code: 1, after_s: 0}  prints the file, or a story of three processes whose
                            root cause stands 80 lines above the end; a negative exit_code is a signal
  port_busy                 Errno 98 and exit 1, as on a port that really is taken
  wrong_k {k_reported: 1}   the config dump reports this k
  ignore_sigterm, slow_shutdown {s: 3}, leave_children
  metrics_skew {factor: 0.5}  accepted tokens in /metrics times this, the log untouched
at a request
  die_at_request {how: "engine", cause, exit_code: 0, grace_s: 0.3}  the engine dies: 500 for this and later
                            requests, an error event in open streams, then exit; how "sigkill": the server
                            kills itself
  oom_at_concurrency {exit_code: 0, grace_s: 0.3}  the same with torch.OutOfMemoryError; needs `concurrency`
  http_500, healthy_but_first_completion_fails  the second is the first with times 1
  hang_mid_stream {after_tokens: 1}  nothing more, the connection stays open
  close_early {after_tokens: 1, clean: false} no finish_reason, usage or [DONE]; clean: the HTTP body ends
                            properly
  no_usage
  garbage_output {mode: "repetition"}  or empty, one_token, gibberish
  stall_log                 from now on the log is silent, requests are served
  log_at_request {lines}    prints lines like startup_log's
"""
