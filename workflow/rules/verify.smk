# REQUIRES  results/deploy/schedule.json (recommend.smk) of an earlier run: its cells are planned when the Snakefile is read
#           results/tables/records.parquet (parse.smk): the sweep that the schedule was derived from
# MAKES     results/tables/schedule.{parquet,csv,md}, printed: whether the schedule does what the K curve promised
#           results/tables/published.{parquet,csv,md}, printed: this run beside the figures of config/published.yaml

PUBLISHED = [Path(folder, "published.yaml") for folder in CONFIG_DIRS]


localrules:
    compare_published,
    verify_schedule,


rule verify_schedule:
    input:
        schedule=SCHEDULE,
        records=f"{RESULTS}/tables/records.parquet",
        evidence=lambda wildcards: made_first(
            [PLAN.awaited(cell) for cell in PLAN.feasible_of(SCHEDULE_CELLS)],
            f"{RESULTS}/tables/schedule.parquet",
        ),
    output:
        parquet=f"{RESULTS}/tables/schedule.parquet",
        csv=f"{RESULTS}/tables/schedule.csv",
        md=f"{RESULTS}/tables/schedule.md",
    log:
        f"{RESULTS}/logs/rules/verify_schedule.log",
    conda:
        WORKFLOW_ENV
    params:
        planned=lambda wildcards: {
            "schedules": scheduled_json(SCHEDULED),
            "folders": PLAN.folders_of(PLAN.feasible_of(SCHEDULE_CELLS)),
            "infeasible": PLAN.refused_of(SCHEDULE_CELLS),
            "store": str(PLAN.store.root),
            "limits": SWEEP.config["validity"],
            "tolerance": SWEEP.config["recommend"]["tolerance"],
        },
        library=LIBRARY,
    message:
        "Comparing the schedule with what it was derived from"
    script:
        "../../scripts/verify_schedule.py"


rule compare_published:
    input:
        points=f"{RESULTS}/tables/points.parquet",
        published=str(next(path for path in PUBLISHED if path.is_file())),
    output:
        parquet=f"{RESULTS}/tables/published.parquet",
        csv=f"{RESULTS}/tables/published.csv",
        md=f"{RESULTS}/tables/published.md",
    log:
        f"{RESULTS}/logs/rules/compare_published.log",
    conda:
        WORKFLOW_ENV
    params:
        config_dirs=CONFIG_DIRS,
        library=LIBRARY,
    message:
        "Putting this run beside published figures"
    script:
        "../../scripts/compare_published.py"
