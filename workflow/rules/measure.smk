# Needs: the boot's endpoint, unless the cell store already has the cell. Makes: evidence in the store and a pointer to it.


rule measure_cell:
    input:
        # Nothing for a finished cell: asking for a server would start it and measure all its cells again.
        unpack(
            lambda wildcards: (
                {"endpoint": f"{RESULTS}/servers/{BOOT_PATTERN}/endpoint.json"}
                if PLAN.needs_server(Cell.from_axes(wildcards))
                else {}
            )
        ),
    output:
        pointer=POINTER,
    log:
        f"{RESULTS}/logs/cells/{CELL_PATTERN}.log",
    conda:
        WORKFLOW_ENV
    threads: 0
    resources:
        mem_mb=50,  # beside the server's: all cells of a boot start at once, and all but one wait
    params:
        spec=lambda wildcards: PLAN.measure_spec(Cell.from_axes(wildcards)).to_json(),
        attempt=lambda wildcards: PLAN.attempt(Cell.from_axes(wildcards), Path(POINTER.format_map(wildcards))),
    message:
        "Measuring {wildcards.method} k{wildcards.k} {wildcards.scenario} at concurrency {wildcards.concurrency}"
    shell:
        'exec "$SPECDEC_PYTHON" -m scripts.measure_cell --spec {params.spec:q} '
        "--pointer {output.pointer:q} --log {log:q} {input:q}"
