# REQUIRES  results/tables/{cells,points}.parquet (judge.smk), outputs.parquet (outputs.smk), analysis.parquet and
#           results/recommendation.json (recommend.smk), results/plots/{plot}.svg (plots.smk), workflow/report/{plot}.rst: the captions,
#           which are also those of `snakemake --report`
# MAKES     results/report.html: the answer, tables, plots and commands in one page that needs no network

from scripts.lib.launched import launches_digest


localrules:
    write_report,
    report,


report: "../report/workflow.rst"


rule write_report:
    input:
        cells=f"{RESULTS}/tables/cells.parquet",
        points=f"{RESULTS}/tables/points.parquet",
        analysis=f"{RESULTS}/tables/analysis.parquet",
        outputs=f"{RESULTS}/tables/outputs.parquet",
        recommendation=f"{RESULTS}/recommendation.json",
        svg=rules.draw_plots.output.svg,
        captions=expand(str(ROOT / "workflow/report/{plot}.rst"), plot=TITLES),
        page=expand(str(ROOT / "scripts/lib/report/page.{form}"), form=["html.j2", "css", "js"]),
    output:
        page=report(
            f"{RESULTS}/report.html",
            caption="../report/report.rst",
            category="Report",
            labels={"page": "the answer and all that makes it believable"},
        ),
    log:
        f"{RESULTS}/logs/rules/write_report.log",
    conda:
        WORKFLOW_ENV
    params:
        launches=lambda wildcards: launches_digest(SWEEP),
        config_dirs=CONFIG_DIRS,
        library=LIBRARY,
    message:
        "Writing the report"
    script:
        "../../scripts/write_report.py"


rule report:
    input:
        f"{RESULTS}/report.html",
        # Tables and deployment say the same as the page, also after a change that measures nothing.
        rules.build_tables.output,
        rules.build_deployment.output,
    message:
        "The report is in {input[0]}"
