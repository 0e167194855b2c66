# REQUIRES  results/tables/cells.parquet (parse.smk)
# MAKES     results/tables/{throughput,kv_cache,acceptance,startup}.{csv,md} and failures.md
#           results/summary.txt, printed; fails after everything else is built when cells failed


localrules:
    build_tables,
    summarize,


rule build_tables:
    input:
        cells=f"{RESULTS}/tables/cells.parquet",
    output:
        tables=expand(
            f"{RESULTS}/tables/{{table}}.{{form}}",
            table=["throughput", "kv_cache", "acceptance", "startup"],
            form=["csv", "md"],
        ),
        failures=f"{RESULTS}/tables/failures.md",
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
        tables=rules.build_tables.output,
    output:
        summary=f"{RESULTS}/summary.txt",
    log:
        f"{RESULTS}/logs/rules/summarize.log",
    conda:
        WORKFLOW_ENV
    params:
        allow_failures=SWEEP.config["allow_failures"],
    message:
        "The results"
    script:
        "../../scripts/summarize.py"
