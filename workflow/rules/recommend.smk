# REQUIRES  results/tables/points.parquet (tables.smk)
# MAKES     results/tables/recommendation.{parquet,csv,md}, results/recommendation.json: what to run under which conditions
#           results/deploy/{compose.yaml,serve.sh,schedule.json,README.md}: the recommended servers, ready to start
#           results/tables/analysis.{parquet,csv,md}: what each speed-up is made of, and the share of the machine's limit

from scripts.lib.launched import facts_of, launches_digest


localrules:
    build_analysis,
    build_recommendation,
    build_deployment,


rule build_recommendation:
    input:
        points=f"{RESULTS}/tables/points.parquet",
    output:
        parquet=f"{RESULTS}/tables/recommendation.parquet",
        csv=report(f"{RESULTS}/tables/recommendation.csv", caption="../report/table.rst", category="Tables"),
        md=f"{RESULTS}/tables/recommendation.md",
        json=f"{RESULTS}/recommendation.json",
    log:
        f"{RESULTS}/logs/rules/build_recommendation.log",
    conda:
        WORKFLOW_ENV
    params:
        wishes=SWEEP.config["recommend"],
        config_dirs=CONFIG_DIRS,
        library=LIBRARY,
    message:
        "Choosing the best method and k under each condition"
    script:
        "../../scripts/build_recommendation.py"


rule build_deployment:
    input:
        recommendation=f"{RESULTS}/recommendation.json",
        points=f"{RESULTS}/tables/points.parquet",
    output:
        compose=f"{RESULTS}/deploy/compose.yaml",
        serve=f"{RESULTS}/deploy/serve.sh",
        schedule=f"{RESULTS}/deploy/schedule.json",
        readme=report(
            f"{RESULTS}/deploy/README.md", caption="../report/deploy.rst", category="Ready to deploy"
        ),
    log:
        f"{RESULTS}/logs/rules/build_deployment.log",
    conda:
        WORKFLOW_ENV
    params:
        wishes=SWEEP.config["recommend"],
        launches=lambda wildcards: launches_digest(SWEEP),
        config_dirs=CONFIG_DIRS,
        library=LIBRARY,
    message:
        "Writing the files of the deployment"
    script:
        "../../scripts/build_deployment.py"


rule build_analysis:
    input:
        points=f"{RESULTS}/tables/points.parquet",
    output:
        parquet=f"{RESULTS}/tables/analysis.parquet",
        csv=report(f"{RESULTS}/tables/analysis.csv", caption="../report/table.rst", category="Tables"),
        md=f"{RESULTS}/tables/analysis.md",
    log:
        f"{RESULTS}/logs/rules/build_analysis.log",
    conda:
        WORKFLOW_ENV
    params:
        facts=lambda wildcards: [f"{server.path} {facts_of(SWEEP, server)}" for server in SWEEP.servers],
        config_dirs=CONFIG_DIRS,
        library=LIBRARY,
    message:
        "Splitting speed-ups into acceptance and step cost"
    script:
        "../../scripts/build_analysis.py"
