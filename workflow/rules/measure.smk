# Needs: the boot's endpoint. Makes: evidence in the cell store, and files that say where it lies.
#
# Only cells that are due get here. Of each the file of a try is asked for that is not there yet (Plan.next_try).


localrules:
    find_evidence,


rule measure_cell:
    input:
        # Nothing for a cell that is finished after all: asking for a server would start it.
        unpack(
            lambda wildcards: (
                {"endpoint": f"{RESULTS}/servers/{BOOT_PATTERN}/endpoint.json"}
                if PLAN.needs_server(Cell.from_axes(wildcards))
                else {}
            )
        ),
    output:
        pointer=f"{CELLS}/{CELL_PATTERN}/{TRY}",
    log:
        f"{RESULTS}/logs/cells/{CELL_PATTERN}/{TRY}.log",
    conda:
        WORKFLOW_ENV
    threads: 0
    resources:
        mem_mb=50,  # beside the server's: all cells of a boot start at once, and all but one wait
    params:
        spec=f"{CELLS}/{CELL_PATTERN}/{SPEC}",  # written when the run starts (specs.py)
        key=lambda wildcards: PLAN.key(Cell.from_axes(wildcards)),
    message:
        "Measuring {wildcards.method} k{wildcards.k} {wildcards.scenario} at concurrency {wildcards.concurrency}"
    shell:
        'exec "$SPECDEC_PYTHON" -m scripts.measure_cell --spec {params.spec:q} --key {params.key} '
        "--pointer {output.pointer:q} --log {log:q} {input:q}"


rule find_evidence:
    input:
        lambda wildcards: made_first(
            PLAN.pointer_needs(Cell.from_axes(wildcards), Path(POINTER.format_map(wildcards))),
            POINTER.format_map(wildcards),
        ),
    output:
        pointer=POINTER,
    log:
        f"{RESULTS}/logs/cells/{CELL_PATTERN}/find_evidence.log",
    conda:
        WORKFLOW_ENV
    params:
        cell=CELL_PATTERN,
        key=lambda wildcards: PLAN.key(Cell.from_axes(wildcards)),
        folder=lambda wildcards: str(PLAN.folder(Cell.from_axes(wildcards))),
    message:
        "Saying where the evidence of {wildcards.method} k{wildcards.k} at concurrency {wildcards.concurrency} lies"
    script:
        "../../scripts/find_evidence.py"
