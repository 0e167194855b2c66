# Needs: the boot's endpoint, unless the cell store already has the cell. Makes: evidence in the store and a pointer to it.


def server_for(wildcards):
    """Nothing for a finished cell: asking for a server would start it and measure all its cells again."""
    cell = SWEEP.cell(CELL_PATTERN.format_map(wildcards))
    return (
        {"endpoint": f"{RESULTS}/servers/{cell.boot.path}/endpoint.json"} if PLAN.needs_server(cell) else {}
    )


rule measure_cell:
    input:
        unpack(server_for),
    output:
        pointer=POINTER,
    log:
        f"{RESULTS}/logs/cells/{CELL_PATTERN}.log",
    threads: 0
    params:
        spec=lambda wildcards: PLAN.measure_spec(Cell.from_axes(wildcards)).to_json(),
        attempt=lambda wildcards: PLAN.attempt(Cell.from_axes(wildcards)),
    message:
        "Measuring {wildcards.method} k{wildcards.k} {wildcards.scenario} at concurrency {wildcards.concurrency}"
    shell:
        "exec {PYTHON} -m scripts.measure_cell --spec {params.spec:q} "
        "--pointer {output.pointer:q} --log {log:q} {input:q}"
