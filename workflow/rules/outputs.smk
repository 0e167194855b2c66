# REQUIRES  results/tables/cells.parquet (judge.smk), and the evidence that it names in the cell store
# MAKES     results/tables/outputs.{parquet,csv,md}: whether each method says the same as `none`, and a sample of what it says


localrules:
    compare_outputs,


rule compare_outputs:
    input:
        cells=f"{RESULTS}/tables/cells.parquet",
    output:
        parquet=f"{RESULTS}/tables/outputs.parquet",
        csv=report(
            f"{RESULTS}/tables/outputs.csv",
            caption="../report/table.rst",
            category="Tables",
        ),
        text=f"{RESULTS}/tables/outputs.md",
    log:
        f"{RESULTS}/logs/rules/compare_outputs.log",
    conda:
        WORKFLOW_ENV
    params:
        library=LIBRARY,
    message:
        "Comparing the answers with the baseline's"
    script:
        "../../scripts/compare_outputs.py"
