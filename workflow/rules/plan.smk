# Needs: config and cell store. Makes: nothing; both rules print and start nothing.


localrules:
    plan,
    why,


rule plan:
    log:
        f"{RESULTS}/logs/rules/plan.log",
    conda:
        WORKFLOW_ENV
    params:
        text=lambda wildcards: render_plan(SWEEP, PLAN.state_word),
    message:
        "Every cell with its state, and the exact server commands"
    script:
        "../../scripts/print_text.py"


rule why:
    log:
        f"{RESULTS}/logs/rules/why.log",
    conda:
        WORKFLOW_ENV
    params:
        text=lambda wildcards: render_why(PLAN),
    message:
        "What made cells due"
    script:
        "../../scripts/print_text.py"
