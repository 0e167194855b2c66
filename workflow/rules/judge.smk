# REQUIRES  results/tables/records.parquet (parse.smk)
# MAKES     results/tables/cells.{parquet,csv}: the tidy table, one row per cell, judged and set against `none`
#           results/tables/points.{parquet,csv}: one row per point, over its repeats, with intervals and verdicts
#
# Other limits of validity run these two and what reads them, and measure nothing.


localrules:
    judge_cells,
    compare_cells,


rule judge_cells:
    input:
        records=f"{RESULTS}/tables/records.parquet",
    output:
        parquet=f"{RESULTS}/tables/cells.parquet",
        csv=f"{RESULTS}/tables/cells.csv",
    log:
        f"{RESULTS}/logs/rules/judge_cells.log",
    conda:
        WORKFLOW_ENV
    params:
        limits=SWEEP.config["validity"],
        library=LIBRARY,
    message:
        "Judging which cells can be believed"
    script:
        "../../scripts/judge_cells.py"


rule compare_cells:
    input:
        cells=f"{RESULTS}/tables/cells.parquet",
    output:
        parquet=f"{RESULTS}/tables/points.parquet",
        csv=f"{RESULTS}/tables/points.csv",
    log:
        f"{RESULTS}/logs/rules/compare_cells.log",
    conda:
        WORKFLOW_ENV
    params:
        library=LIBRARY,
    message:
        "Comparing every point with its baseline"
    script:
        "../../scripts/compare_cells.py"
