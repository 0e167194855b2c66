# REQUIRES  results/tables/{cells,points}.parquet (judge.smk), outputs.parquet (outputs.smk)
# MAKES     results/tables/{throughput,latency,k_sweep,...}.{csv,md,parquet} (FINAL_TABLES) and failures.{csv,md,parquet}
#           results/summary.txt, printed; fails after everything else is built when cells failed

from scripts.lib.tables.names import FINAL_TABLES


localrules:
    build_tables,
    summarize,
    tables,


rule build_tables:
    input:
        cells=f"{RESULTS}/tables/cells.parquet",
        points=f"{RESULTS}/tables/points.parquet",
    output:
        tables=expand(
            f"{RESULTS}/tables/{{table}}.{{form}}",
            table=FINAL_TABLES,
            form=["md", "parquet"],
        ),
        csv=report(
            expand(f"{RESULTS}/tables/{{table}}.csv", table=FINAL_TABLES),
            caption="../report/table.rst",
            category="Tables",
        ),
        failures=f"{RESULTS}/tables/failures.md",
        lost=multiext(f"{RESULTS}/tables/failures", ".csv", ".parquet"),
    log:
        f"{RESULTS}/logs/rules/build_tables.log",
    conda:
        WORKFLOW_ENV
    params:
        library=LIBRARY,
    message:
        "Building the final tables"
    script:
        "../../scripts/build_tables.py"


rule summarize:
    input:
        cells=f"{RESULTS}/tables/cells.parquet",
        points=f"{RESULTS}/tables/points.parquet",
        outputs=f"{RESULTS}/tables/outputs.parquet",
        tables=rules.build_tables.output,
    output:
        summary=f"{RESULTS}/summary.txt",
    log:
        f"{RESULTS}/logs/rules/summarize.log",
    # It fails where cells have failed: another try would say the same again.
    retries: 0
    conda:
        WORKFLOW_ENV
    params:
        allow_failures=SWEEP.config["allow_failures"],
    message:
        "The results"
    script:
        "../../scripts/summarize.py"


rule tables:
    input:
        f"{RESULTS}/tables/cells.parquet",
        f"{RESULTS}/summary.txt",
    message:
        "Everything is measured and in tables"
