# REQUIRES  results/tables/points.parquet (tables.smk)
# MAKES     results/tables/recommendation.{parquet,csv,md}, results/recommendation.json: what to run under which conditions
#           results/deploy/{compose.yaml,serve.sh,schedule.json,README.md}: the recommended servers, ready to start


localrules:
    build_recommendation,
    build_deployment,


rule build_recommendation:
    input:
        points=f"{RESULTS}/tables/points.parquet",
    output:
        parquet=f"{RESULTS}/tables/recommendation.parquet",
        csv=f"{RESULTS}/tables/recommendation.csv",
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
        readme=f"{RESULTS}/deploy/README.md",
    log:
        f"{RESULTS}/logs/rules/build_deployment.log",
    conda:
        WORKFLOW_ENV
    params:
        wishes=SWEEP.config["recommend"],
        config_dirs=CONFIG_DIRS,
        library=LIBRARY,
    message:
        "Writing the files of the deployment"
    script:
        "../../scripts/build_deployment.py"
