# REQUIRES  results/cells/{cell}/evidence.json (measure.smk): where the evidence of each cell lies in the cell store
# MAKES     results/cells/{cell}/record.json: one cell's record, made when asked for
#           results/tables/records.parquet: the records of all cells, infeasible ones included, and of other runs and tools
#
# Both are pure functions of the evidence, so a better parser never costs a measurement.


localrules:
    parse_cell,
    collect_cells,


rule parse_cell:
    input:
        pointer=POINTER,
    output:
        record=f"{RESULTS}/cells/{CELL_PATTERN}/record.json",
    log:
        f"{RESULTS}/logs/cells/{CELL_PATTERN}/parse.log",
    conda:
        WORKFLOW_ENV
    params:
        library=LIBRARY,
    message:
        "Reading the evidence of {wildcards.method} k{wildcards.k} at concurrency {wildcards.concurrency}"
    script:
        "../../scripts/parse_cell.py"


rule collect_cells:
    input:
        evidence=lambda wildcards: made_first(
            [PLAN.awaited(cell) for cell in PLAN.feasible], f"{RESULTS}/tables/records.parquet"
        ),
        others=SWEEP.other_records,
        imports=[path for path, _ in SWEEP.imports],
    output:
        records=f"{RESULTS}/tables/records.parquet",
    log:
        f"{RESULTS}/logs/rules/collect_cells.log",
    conda:
        WORKFLOW_ENV
    threads: 8
    params:
        infeasible=lambda wildcards: PLAN.refused,
        import_axes=[axes for _, axes in SWEEP.imports],
        folders=lambda wildcards: PLAN.folders,
        store=str(PLAN.store.root),
        library=LIBRARY,
    message:
        "Reading the evidence of all cells"
    script:
        "../../scripts/collect_cells.py"
