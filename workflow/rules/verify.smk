# REQUIRES  results/deploy/schedule.json (recommend.smk) of an earlier run: its cells are planned when the Snakefile is read
#           results/tables/records.parquet (parse.smk): the sweep that the schedule was derived from
# MAKES     results/tables/schedule.{parquet,csv,md}, printed: whether the schedule does what the K curve promised


localrules:
    verify_schedule,


rule verify_schedule:
    input:
        schedule=SCHEDULE,
        records=f"{RESULTS}/tables/records.parquet",
        pointers=lambda wildcards: [
            POINTER.format_map(cell.axes) for cell in SCHEDULE_CELLS if not PLAN.infeasible(cell)
        ],
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
            "infeasible": PLAN.refused_of(SCHEDULE_CELLS),
            "limits": SWEEP.config["validity"],
            "tolerance": SWEEP.config["recommend"]["tolerance"],
        },
        cells=lambda wildcards: [f"{cell.path} {PLAN.key(cell)}" for cell in SCHEDULE_CELLS],
        library=LIBRARY,
    message:
        "Comparing the schedule with what it was derived from"
    script:
        "../../scripts/verify_schedule.py"
