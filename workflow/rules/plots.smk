# REQUIRES  results/tables/points.parquet (judge.smk)
# MAKES     results/plots/{plot}.{html,svg,png} for every plot of scripts/lib/plots/names.py
from scripts.lib.plots.names import TITLES


localrules:
    draw_plots,


rule draw_plots:
    input:
        points=f"{RESULTS}/tables/points.parquet",
    output:
        html=[
            report(
                f"{RESULTS}/plots/{plot}.html",
                caption=f"../report/{plot}.rst",
                category="Plots",
                labels={"plot": title},
            )
            for plot, title in TITLES.items()
        ],
        svg=expand(f"{RESULTS}/plots/{{plot}}.svg", plot=TITLES),
        png=expand(f"{RESULTS}/plots/{{plot}}.png", plot=TITLES),
    log:
        f"{RESULTS}/logs/rules/draw_plots.log",
    conda:
        WORKFLOW_ENV
    params:
        config_dirs=CONFIG_DIRS,
        library=LIBRARY,
    message:
        "Drawing the plots"
    script:
        "../../scripts/draw_plots.py"
