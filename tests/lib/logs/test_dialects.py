"""Every documented form of every line, old and new, with the value it must give."""

from __future__ import annotations

import pytest

from tests.lib.logs.helpers import parse, sglang, vllm

OLD = "INFO 08-12 06:11:52 gpu_executor.py:76] "

SINGLE = [
    # KV cache tokens
    (OLD + "# GPU blocks: 2345, # CPU blocks: 512", {"num_gpu_blocks": 2345, "kv_cache_tokens": 37520}),
    (OLD + "# cuda blocks: 2345, # CPU blocks: 512", {"num_gpu_blocks": 2345, "kv_cache_tokens": 37520}),
    (OLD + "# GPU blocks: 2345", {"num_gpu_blocks": 2345}),
    (vllm("GPU KV cache size: 1,234,567 tokens"), {"kv_cache_tokens": 1234567}),
    (
        vllm(
            "GPU KV cache size: 1,234,567 tokens, Maximum concurrency for 32,768 tokens per request: 37.68x"
        ),
        {"kv_cache_tokens": 1234567, "max_concurrency": 37.68, "max_concurrency_length_tokens": 32768},
    ),
    (
        vllm("CPU KV cache size: 9,216 tokens, Maximum concurrency for 1,024 tokens per request: 9.00x"),
        {"kv_cache_tokens": 9216},
    ),
    (
        vllm("XPU KV cache size: 9,216 tokens, Maximum concurrency for 1,024 tokens per request: 9.00x"),
        {"kv_cache_tokens": 9216},
    ),
    (
        vllm("GPU + host KV cache size: 2,000,000 tokens"),
        {"kv_cache_with_host_tokens": 2000000, "kv_cache_tokens": None},
    ),
    (
        vllm("Engine 000: vllm cache_config_info with initialization after num_gpu_blocks is: 2345"),
        {"num_gpu_blocks": 2345},
    ),
    (vllm("vllm cache_config_info with initialization after num_gpu_blocks is: 77"), {"num_gpu_blocks": 77}),
    (
        vllm("2 Engines: vllm cache_config_info with initialization after num_gpu_blocks is: 78"),
        {"num_gpu_blocks": 78},
    ),
    # concurrency
    (
        OLD + "Maximum concurrency for 32768 tokens per request: 37.68x",
        {"max_concurrency": 37.68, "max_model_len": 32768},
    ),
    (vllm("Maximum concurrency for 32,768 tokens per request: 1,037.68x"), {"max_concurrency": 1037.68}),
    # available KV memory
    (
        OLD + "Memory profiling results: total_gpu_memory=79.11GiB initial_memory_usage=1.02GiB "
        "peak_torch_memory=20.00GiB memory_usage_post_profile=2.00Gib non_torch_memory=1.00GiB "
        "kv_cache_size=51.30GiB gpu_memory_utilization=0.90",
        {"kv_available_gib": 51.3, "device_total_gib": 79.11, "gpu_memory_utilization": 0.9},
    ),
    (
        OLD + "the current vLLM instance can use total_gpu_memory (79.11GiB) x gpu_memory_utilization (0.90) "
        "= 71.20GiB",
        {"device_total_gib": 79.11, "gpu_memory_utilization": 0.9},
    ),
    (
        OLD + "model weights take 15.00GiB; non_torch_memory takes 0.10GiB; PyTorch activation peak memory "
        "takes 1.20GiB; the rest of the memory reserved for KV Cache is 51.30GiB.",
        {"kv_available_gib": 51.3},
    ),
    (vllm("Available KV cache memory: 51.30 GiB"), {"kv_available_gib": 51.3}),
    (vllm("Available KV cache memory: 51.3 GiB"), {"kv_available_gib": 51.3}),
    (vllm("Available KV cache memory: -1.25 GiB"), {"kv_available_gib": -1.25}),
    (vllm("Explicitly set (4.0/31.25) GiB for KV cache on node 0."), {"kv_available_gib": 4.0}),
    (
        vllm("Auto set (3.5/31.25) GiB for KV cache on node 0, with 4.0 GiB requested memory and so on"),
        {"kv_available_gib": 3.5},
    ),
    # weights and loading
    (OLD + "Loading model weights took 14.9888 GB", {"weights_gib": 14.9888}),
    (
        vllm("Model loading took 14.9888 GB and 5.123456 seconds"),
        {"weights_gib": 14.9888, "model_load_s": 5.123456},
    ),
    (
        vllm("Model loading took 14.9888 GiB and 5.123456 seconds"),
        {"weights_gib": 14.9888, "model_load_s": 5.123456},
    ),
    (
        vllm("Model loading took 15.0 GiB memory and 5.123456 seconds"),
        {"weights_gib": 15.0, "model_load_s": 5.123456},
    ),
    (vllm("Loading weights took 4.90 seconds"), {"weights_load_s": 4.9, "drafter_load_s": None}),
    # compile, capture, init
    (vllm("torch.compile takes 19.80 s in total"), {"compile_s": 19.8}),
    (vllm("torch.compile took 19.80 s in total"), {"compile_s": 19.8}),
    (vllm("[eagle_head] torch.compile took 3.10 s in total"), {"compile_s": 3.1}),
    (vllm("[draft_model] torch.compile took 3.20 s in total"), {"compile_s": 3.2}),
    (vllm("[dflash_head] torch.compile took 3.30 s in total"), {"compile_s": 3.3}),
    (vllm("[dspark_head] torch.compile took 3.40 s in total"), {"compile_s": 3.4}),
    (
        vllm("torch.compile and initial profiling/warmup run together took 31.00 s in total"),
        {"compile_s": None},
    ),
    (
        vllm("Directly load the compiled graph(s) for compile range (1, 8192) from the cache, took 2.10 s"),
        {"compile_cache": "warm"},
    ),
    (vllm("Directly load the compiled graph(s) for shape None from the cache"), {"compile_cache": "warm"}),
    (vllm("Directly load AOT compilation from path /x/y"), {"compile_cache": "warm"}),
    (vllm("Compiling a graph for compile range (1, 8192) takes 10.50 s"), {"compile_cache": "cold"}),
    (vllm("Compiling a graph for general shape takes 20.60 s"), {"compile_cache": "cold"}),
    (vllm("Cache the graph of shape None for later use"), {"compile_cache": "cold"}),
    (OLD + "Graph capturing finished in 22 secs.", {"capture_s": 22, "capture_gib": None}),
    (OLD + "Graph capturing finished in 22 secs, took 0.80 GiB", {"capture_s": 22, "capture_gib": 0.8}),
    (vllm("Graph capturing finished in 0 secs, took -0.02 GiB"), {"capture_s": 0, "capture_gib": -0.02}),
    (vllm("Estimated CUDA graph memory: 0.95 GiB total"), {"capture_estimate_gib": 0.95}),
    (vllm("Skipping CUDA graph capture. To turn on CUDA graph capture, set ..."), {"enforce_eager": True}),
    (
        vllm("Enforce eager set, disabling torch.compile and CUDAGraphs. This is equivalent to"),
        {"enforce_eager": True},
    ),
    (OLD + "init engine (profile, create kv cache, warmup model) took 92.10 seconds", {"init_s": 92.1}),
    (
        vllm("init engine (profile, create kv cache, warmup model) took 92.10 s (compilation: 28.46 s)"),
        {"init_s": 92.1, "init_compile_s": 28.46},
    ),
    (
        vllm(
            "init engine (profile, create kv cache, warmup model) took 92.10 s (compilation: 9.00 s \u2014 "
            "language_model: 7.00 s, encoder: 2.00 s)"
        ),
        {"init_s": 92.1, "init_compile_s": 9.0},
    ),
    (
        vllm("init engine (profile, create kv cache, warmup model) took 2.90 s"),
        {"init_s": 2.9, "init_compile_s": None},
    ),
    # attention backends
    (OLD + "Using Flash Attention backend.", {"attention_backend": "FLASH_ATTN"}),
    (vllm("Using Flash Attention backend on V1 engine."), {"attention_backend": "FLASH_ATTN"}),
    (vllm("Using FlashInfer backend on V1 engine."), {"attention_backend": "FLASHINFER"}),
    (OLD + "Using XFormers backend.", {"attention_backend": "XFORMERS"}),
    (vllm("Using FLASH_ATTN backend."), {"attention_backend": "FLASH_ATTN"}),
    (vllm("Using AttentionBackendEnum.FLASHINFER backend."), {"attention_backend": "FLASHINFER"}),
    (
        vllm(
            "Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN', 'FLASHINFER', "
            "'TRITON_ATTN']."
        ),
        {"attention_backend": "FLASH_ATTN"},
    ),
    (
        vllm("Using FLASHINFER attention backend out of potential backends: ['FLASHINFER', 'TRITON_ATTN']"),
        {"attention_backend": "FLASHINFER"},
    ),
    (
        vllm(
            "Using TRITON_ATTN attention backend out of potential backends: [('FLASH_ATTN', 'no'), "
            "('TRITON_ATTN', 'yes')]."
        ),
        {"attention_backend": "TRITON_ATTN"},
    ),
    (vllm("Using FLASH_ATTN MLA prefill backend."), {"attention_backend": None}),
    (vllm("Using triton Mamba SSU backend."), {"attention_backend": None, "mamba_backend": "triton"}),
    (
        vllm(
            "Using ['PYNCCL', 'CUSTOM'] all-reduce backends (in dispatch order) out of potential backends: "
            "['NCCL']."
        ),
        {"attention_backend": None},
    ),
    (vllm("Using HND KV cache layout for CPU_ATTN backend."), {"attention_backend": None}),
    (vllm("Using FlashInfer for top-p & top-k sampling."), {"attention_backend": None}),
    (vllm("Using TritonExperts MoE backend"), {"attention_backend": None, "moe_backend": None}),
    # MoE backends, KV dtype
    (vllm("Using DeepGEMM backend for FP8 MoE"), {"moe_backend": "DeepGEMM", "attention_backend": None}),
    (vllm("Using FLASHINFER_CUTLASS backend for NvFp4 MoE"), {"moe_backend": "FLASHINFER_CUTLASS"}),
    (
        vllm("Using TRITON Unquantized MoE backend out of potential backends: ['TRITON', 'X']."),
        {"moe_backend": "TRITON"},
    ),
    (
        vllm("Using FlashInfer CUTLASS Unquantized MoE backend out of potential backends: ['A']."),
        {"moe_backend": "FlashInfer CUTLASS"},
    ),
    (
        vllm("Using DEEPGEMM Fp8 MoE backend out of potential backends: ['DEEPGEMM']."),
        {"moe_backend": "DEEPGEMM"},
    ),
    (
        vllm("Using 'MARLIN' NvFp4 MoE backend out of potential backends: ['MARLIN']."),
        {"moe_backend": "MARLIN"},
    ),
    (
        OLD + "Using fp8 data type to store kv cache. It reduces the GPU memory footprint",
        {"kv_cache_dtype": "fp8"},
    ),
    (vllm("Using fp8_e4m3 data type to store kv cache. It reduces"), {"kv_cache_dtype": "fp8_e4m3"}),
    # hybrid, scheduler
    (
        vllm(
            "Setting attention block size to 1072 tokens to ensure that attention page size is >= mamba "
            "page size."
        ),
        {"block_size_tokens": 1072, "hybrid": True},
    ),
    (vllm("Mamba cache mode is set to 'align' for X by default"), {"mamba_cache_mode": "align"}),
    (
        vllm("Updating mamba_ssm_cache_dtype to 'float32' for NemotronH model"),
        {"mamba_ssm_cache_dtype": "float32"},
    ),
    (vllm("Chunked prefill is enabled with max_num_batched_tokens=8192."), {"max_num_batched_tokens": 8192}),
    (
        vllm(
            "max_num_scheduled_tokens is set to 6144 based on the speculative decoding settings. This may "
            "lead to"
        ),
        {"max_num_scheduled_tokens": 6144},
    ),
    (vllm("Asynchronous scheduling is enabled."), {"async_scheduling": True}),
    (vllm("Asynchronous scheduling is disabled."), {"async_scheduling": False}),
    (
        vllm("Async scheduling not supported with ngram-based speculative decoding and will be disabled."),
        {"async_scheduling": False},
    ),
    (vllm("Using max model len 32768"), {"max_model_len": 32768}),
    (vllm("Using V2 Model Runner"), {"model_runner": "V2"}),
    (vllm("Model Runner V2 requires Triton; using the V1 model runner instead."), {"model_runner": "V1"}),
    (
        vllm(
            "Free memory on device (75.1/79.1 GiB) on startup. Desired GPU memory utilization is (0.9, "
            "71.2 GiB). Actual usage is 15.0 GiB for weight, 1.2 GiB for peak activation, 0.3 GiB for "
            "non-torch memory, and 0.5 GiB for CUDAGraph memory."
        ),
        {
            "device_total_gib": 79.1,
            "gpu_memory_utilization": 0.9,
            "activation_gib": 1.2,
            "non_torch_gib": 0.3,
        },
    ),
    # SGLang
    (
        sglang(
            "max_total_num_tokens=345678, max_prefill_tokens=16384, max_running_requests=48, "
            "context_len=32768"
        ),
        {"kv_cache_tokens": 345678, "max_num_seqs": 48, "max_model_len": 32768},
    ),
    (
        sglang(
            "max_total_num_tokens=345678, chunked_prefill_size=8192, max_prefill_tokens=16384, "
            "max_running_requests=48, context_len=32768, available_gpu_mem=9.87 GB"
        ),
        {"kv_cache_tokens": 345678, "chunked_prefill_tokens": 8192},
    ),
    (
        sglang("KV Cache is allocated. K size: 4.71 GB, V size: 4.71 GB."),
        {"kv_available_gib": 9.42, "kv_cache_tokens": None},
    ),
    (
        sglang("KV Cache is allocated. #tokens: 345678, K size: 4.71 GB, V size: 4.71 GB"),
        {"kv_available_gib": 9.42, "kv_cache_tokens": 345678},
    ),
    (
        sglang("KV Cache is allocated. #tokens: 345678, KV size: 9.42 GB"),
        {"kv_available_gib": 9.42, "kv_cache_tokens": 345678},
    ),
    (
        sglang(
            "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 345678, K size: 4.71 GB, V size: 4.71 GB"
        ),
        {"kv_cache_tokens": 345678, "kv_cache_dtype": "bfloat16"},
    ),
    (
        sglang("KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 999999, KV size: 99.42 GB"),
        {"kv_cache_tokens": None},
    ),
    (
        sglang(
            "Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 345678, KV size: "
            "9.42 GB"
        ),
        {"kv_cache_tokens": 345678, "kv_available_gib": 9.42},
    ),
    (
        sglang("SWAKVPool mem usage: 12.3 GB, swa size: 40000, full size: 160000"),
        {"swa_tokens": 40000, "hybrid": True},
    ),
    (
        sglang("SWAKVPool mem usage: 12.345678901 GB, swa size: 40000, full size: 160000"),
        {"swa_tokens": 40000},
    ),
    (
        sglang(
            "Mamba Cache is allocated. max_mamba_cache_size: 96, conv_state size: 0.21GB, ssm_state size: "
            "3.10GB intermediate_ssm_state_cache size: 9.30GB intermediate_conv_window_cache size: 0.10GB"
        ),
        {"mamba_cache_gib": 12.71, "hybrid": True},
    ),
    (
        sglang(
            "Load weight end. type=XForCausalLM, dtype=torch.bfloat16, avail mem=60.10 GB, mem usage=15.20 "
            "GB."
        ),
        {"weights_gib": 15.2, "architecture": "XForCausalLM", "weights_load_s": None},
    ),
    (
        sglang(
            "Load weight end. elapsed=12.30 s, type=XForCausalLM, avail mem=60.10 GB, mem usage=15.20 GB."
        ),
        {"weights_gib": 15.2, "weights_load_s": 12.3},
    ),
    (
        sglang("Load weight end. type=XForCausalLM, dtype=torch.bfloat16, avail mem=60.10 GB"),
        {"weights_gib": None},
    ),
    (
        sglang("Capture cuda graph end. Time elapsed: 12.30 s. avail mem=8.00 GB. mem usage=1.90 GB."),
        {"capture_s": 12.3, "capture_gib": 1.9},
    ),
    (
        sglang("Capture cuda graph end. Time elapsed: 12.30 s. mem usage=1.90 GB. avail mem=8.00 GB."),
        {"capture_s": 12.3, "capture_gib": 1.9},
    ),
    (
        sglang(
            "Capture target verify CUDA graph end. elapsed=12.30 s, mem usage=1.90 GB, avail mem=8.00 GB."
        ),
        {"capture_s": 12.3},
    ),
    (
        sglang(
            "Capture draft extend cuda graph end. Time elapsed: 2.30 s. mem usage=0.90 GB. avail mem=8.00 GB."
        ),
        {"capture_s": 2.3},
    ),
    (
        sglang(
            "Capture piecewise CUDA graph end. Time elapsed: 2.30 s. mem usage=0.90 GB. avail mem=8.00 GB."
        ),
        {"capture_s": 2.3},
    ),
    (
        sglang("Attention backend not explicitly specified. Use flashinfer backend by default."),
        {"attention_backend": "flashinfer"},
    ),
]


@pytest.mark.parametrize(("text", "expected"), SINGLE, ids=[text.strip()[-60:] for text, _ in SINGLE])
def test_line_gives_value(text: str, expected: dict) -> None:
    report = parse(text)
    assert {name: report.get(name) for name in expected} == expected
    for name, value in expected.items():
        if value is None:
            assert report.missing[name]
        elif name != "hybrid":
            assert report.facts[name].dialect
            assert report.facts[name].raw
            assert report.facts[name].line == 1


DUMPS = [
    (
        "INFO 08-12 06:11:52 llm_engine.py:174] Initializing an LLM engine (v0.5.4) with config: "
        "model='facebook/opt-125m', speculative_config=None, tokenizer='facebook/opt-125m', "
        "max_seq_len=2048, enforce_eager=False, kv_cache_dtype=auto",
        ("0.5.4", "V0", "none", 0, None, 2048),
    ),
    (
        "INFO 08-12 06:11:52 llm_engine.py:174] Initializing an LLM engine (v0.6.0) with config: "
        "model='org/target', speculative_config=SpeculativeConfig(draft_model='org/draft', "
        "num_spec_tokens=5), max_seq_len=4096",
        ("0.6.0", "V0", "draft_model", 5, "org/draft", 4096),
    ),
    (
        "INFO 08-12 06:11:52 llm_engine.py:174] Initializing an LLM engine (v0.6.3.post1) with config: "
        "model='org/target', speculative_config=SpeculativeConfig(draft_model='[ngram]', "
        "num_spec_tokens=4), max_seq_len=4096",
        ("0.6.3.post1", "V0", "ngram", 4, None, 4096),
    ),
    (
        vllm(
            "Initializing a V0 LLM engine (v0.8.5) with config: model='t', "
            "speculative_config=SpeculativeConfig(method='eagle', model='d', num_spec_tokens=2), "
            "max_seq_len=1024"
        ),
        ("0.8.5", "V0", "eagle", 2, "d", 1024),
    ),
    (
        vllm(
            "Initializing a V1 LLM engine (v0.10.2) with config: model='/m/a,b)c', "
            "speculative_config=SpeculativeConfig(method='deepseek_mtp', model='/m/a,b)c', "
            "num_spec_tokens=1), max_seq_len=8192"
        ),
        ("0.10.2", "V1", "mtp", 1, "/m/a,b)c", 8192),
    ),
    (
        vllm(
            "Initializing a V1 LLM engine (v0.33.0) with config: model='t', speculative_config=None, "
            "max_seq_len=8192"
        ),
        ("0.33.0", "V1", "none", 0, None, 8192),
    ),
]


@pytest.mark.parametrize(("text", "expected"), DUMPS, ids=[e[0] + e[2] for _, e in DUMPS])
def test_config_dump(text: str, expected: tuple) -> None:
    report = parse(text)
    names = ("speculative_method", "num_speculative_tokens", "drafter_model", "max_model_len")
    assert (report.version, report.generation, *map(report.get, names)) == expected


def test_old_arguments() -> None:
    report = parse(
        "INFO 08-12 06:11:52 api_server.py:459] vLLM API server version 0.6.3.post1\n"
        "INFO 08-12 06:11:52 api_server.py:460] args: Namespace(host=None, max_model_len=4096, "
        "block_size=32, max_num_seqs=256, "
        "speculative_model='[ngram]', num_speculative_tokens=5, lora_modules=None, middleware=[], "
        "enforce_eager=True)\n"
        "INFO 08-12 06:11:53 gpu_executor.py:76] # GPU blocks: 100, # CPU blocks: 512\n"
    )
    assert report.version == "0.6.3.post1"
    assert (report.get("speculative_method"), report.get("num_speculative_tokens")) == ("ngram", 5)
    assert (report.get("max_num_seqs"), report.get("asked_max_model_len")) == (256, 4096)
    assert report.get("kv_cache_tokens") == 3200
    assert "32 tokens" in report.facts["kv_cache_tokens"].note


def test_printed_block_size_beats_the_default_of_sixteen() -> None:
    report = parse(
        vllm(
            "Setting attention block size to 1072 tokens to ensure that attention page size is >= mamba "
            "page size."
        )
        + vllm("vllm cache_config_info with initialization after num_gpu_blocks is: 10")
    )
    assert report.get("kv_cache_tokens") == 10720


def test_sglang_arguments() -> None:
    report = parse(
        sglang(
            "server_args=ServerArgs(model_path='/m/t', context_length=16384, tp_size=2, dp_size=1, "
            "page_size=64, max_running_requests=None, disable_radix_cache=True, "
            "disable_overlap_schedule=False, speculative_algorithm='EAGLE3', "
            "speculative_draft_model_path='/m/d', speculative_num_steps=3, speculative_eagle_topk=1, "
            "speculative_num_draft_tokens=4, attention_backend='fa3', disable_cuda_graph=False)"
        )
    )
    expected = {
        "speculative_method": "eagle3",
        "num_speculative_tokens": 3,
        "drafter_model": "/m/d",
        "block_size_tokens": 64,
        "tensor_parallel_size": 2,
        "enable_prefix_caching": False,
        "async_scheduling": True,
        "attention_backend": "fa3",
        "enforce_eager": False,
        "max_num_seqs": None,
    }
    assert {name: report.get(name) for name in expected} == expected


NOTICES = [
    (
        "max_num_scheduled_tokens is set to 2032 based on the speculative decoding settings. This may",
        "scheduled_tokens",
        {"scheduled_tokens": 2032},
    ),
    (
        "Enabling num_speculative_tokens > 1 will run multiple times of forward on same MTP layer,which "
        "may result in lower acceptance rate",
        "mtp_layer_reused",
        {},
    ),
    (
        "Enabling num_speculative_tokens > 1 will runmultiple times of forward on same MTP layer,which",
        "mtp_layer_reused",
        {},
    ),
    (
        "Async scheduling not supported with ngram-based speculative decoding and will be disabled.",
        "async_scheduling_disabled",
        {"method": "ngram"},
    ),
    (
        "CUDAGraphMode.FULL is not supported with spec-decode for attention backend FLASH_ATTN (support: "
        "X); setting cudagraph_mode=PIECEWISE",
        "cudagraph_downgraded",
        {"mode": "FULL", "new_mode": "PIECEWISE"},
    ),
    (
        "DFlash draft attention (FLASH_ATTN) does not support full CUDA graphs; running the draft eagerly",
        "drafter_eager",
        {},
    ),
    (
        "min_p and logit_bias parameters won't work with speculative decoding.",
        "sampling_settings_ignored",
        {},
    ),
    (
        "Overriding draft model max model len from 262144 to 65536",
        "drafter_length_limited",
        {"from": 262144, "to": 65536},
    ),
    (
        "draft model's max_model_len (4096) is smaller than target's max_model_len (8192); reducing "
        "max_model_len to 4096",
        "target_length_limited",
        {"drafter_len": 4096, "to": 4096},
    ),
    (
        "Add 4 padding layers, may waste at most 66.67% KV cache memory",
        "kv_padding",
        {"layers": 4, "waste_percent": 66.67},
    ),
    (
        "Triton kernel JIT compilation during inference: _zero_kv_blocks_kernel. This causes a latency "
        "spike; consider",
        "jit_during_inference",
        {"kernel": "_zero_kv_blocks_kernel"},
    ),
    (
        "Using default MoE config. Performance might be sub-optimal! Config file not found at /x/E=1.json",
        "default_moe_config",
        {"path": "/x/E=1.json"},
    ),
    (
        "method `deepseek_mtp` is deprecated and replaced with mtp.",
        "method_renamed",
        {"method": "deepseek_mtp", "to": "mtp"},
    ),
    (
        "Overriding num_gpu_blocks=900 with num_gpu_blocks_override=100",
        "kv_blocks_forced",
        {"measured": 900, "forced": 100},
    ),
    (
        "No available shared memory broadcast block found in 60 seconds.",
        "shared_memory_wait",
        {"seconds": 60},
    ),
    ("Multiplying the GPU KV cache size by the dcp_world_size 2.", "context_parallel_kv", {"factor": 2}),
    ("FlashInfer kernels are disabled: no nvcc", "flashinfer_disabled", {}),
]


@pytest.mark.parametrize(("message", "notice_id", "values"), NOTICES, ids=[n[1] for n in NOTICES])
def test_vllm_warning(message: str, notice_id: str, values: dict) -> None:
    text = vllm(message, process="APIServer pid=1", level="WARNING") + vllm(message, level="WARNING")
    found = parse(text).notices(notice_id)
    repeats = notice_id in ("jit_during_inference", "shared_memory_wait")
    assert len(found) == (2 if repeats else 1), (
        "the same record from two processes counts once, run-time ones always"
    )
    assert values.items() <= dict(found[0].values).items()
    assert found[0].advice
    assert found[0].line == 1


SGLANG_NOTICES = [
    ("Max running requests is reset to 48 for speculative decoding.", "sglang_slots_reset", {"slots": 48}),
    (
        "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when speculative_eagle_topk "
        "== 1",
        "sglang_draft_tokens_adjusted",
        {},
    ),
    (
        "max_total_tokens=900000 is larger than the profiled value 345678. Use the profiled value instead.",
        "sglang_pool_clamped",
        {"asked": 900000, "profiled": 345678},
    ),
    (
        "DFLASH block size mismatch: using speculative_num_draft_tokens=4 but draft config block_size=16.",
        "dflash_block_mismatch",
        {"used": 4, "trained": 16},
    ),
]


@pytest.mark.parametrize(
    ("message", "notice_id", "values"), SGLANG_NOTICES, ids=[n[1] for n in SGLANG_NOTICES]
)
def test_sglang_warning(message: str, notice_id: str, values: dict) -> None:
    (found,) = parse(sglang(message)).notices(notice_id)
    assert dict(found.values) == values


def test_scheduled_tokens_warns_only_when_something_was_taken() -> None:
    limit = (
        "max_num_scheduled_tokens is set to {} based on the speculative decoding settings. This may lead to"
    )
    budget = vllm("Chunked prefill is enabled with max_num_batched_tokens=2048.", process="APIServer pid=1")
    taken = parse(budget + vllm(limit.format(1920)))
    assert dict(taken.notices("scheduled_tokens")[0].values) == {
        "scheduled_tokens": 1920,
        "max_num_batched_tokens": 2048,
    }
    untouched = parse(budget + vllm(limit.format(2048)))
    assert not untouched.notices("scheduled_tokens")
    assert untouched.get("max_num_scheduled_tokens") == 2048
