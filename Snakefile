# Which speculative decoding to deploy, measured on real servers (README.md). Run it with `snakemake --cores 1`.
from snakemake.utils import min_version

min_version("9.0")


include: "workflow/rules/common.smk"
include: "workflow/rules/resources.smk"
include: "workflow/rules/serve.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/parse.smk"
include: "workflow/rules/judge.smk"
include: "workflow/rules/outputs.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/recommend.smk"
include: "workflow/rules/plots.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/verify.smk"
include: "workflow/rules/plan.smk"


rule all:
    default_target: True
    input:
        rules.tables.input,
        f"{RESULTS}/tables/outputs.md",
        f"{RESULTS}/recommendation.json",
        f"{RESULTS}/deploy/README.md",
        f"{RESULTS}/tables/analysis.md",
    message:
        "The sweep is complete"
