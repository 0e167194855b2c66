# REQUIRES  results/cells/{cell}/evidence.json (measure.smk): where the evidence of each cell lies in the cell store
# MAKES     results/cells/{cell}/record.json: one cell's record, made when asked for
#           results/tables/cells.{parquet,csv}: the tidy table, one row per cell, infeasible ones included
#
# Both are pure functions of the evidence, so a better parser never costs a measurement.


localrules:
    parse_cell,
    collect_cells,


rule parse_cell:
    input:
        pointer=f"{RESULTS}/cells/{CELL_PATTERN}/evidence.json",
    output:
        record=f"{RESULTS}/cells/{CELL_PATTERN}/record.json",
    params:
        library=LIBRARY,
    message:
        "Reading the evidence of {wildcards.method} k{wildcards.k} at concurrency {wildcards.concurrency}"
    script:
        "../../scripts/parse_cell.py"


rule collect_cells:
    input:
        pointers=lambda wildcards: evidence_of_sweep(),
    output:
        parquet=f"{RESULTS}/tables/cells.parquet",
        csv=f"{RESULTS}/tables/cells.csv",
    threads: 8
    params:
        infeasible=lambda wildcards: infeasible_of_sweep(),
        cells=lambda wildcards: cells_of_sweep(),
        library=LIBRARY,
    message:
        "Collecting all cells into one table"
    script:
        "../../scripts/collect_cells.py"
