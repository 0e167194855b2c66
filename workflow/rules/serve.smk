# Needs: what the launch needs (engine environment, built models). Makes: a running server for the cells of one boot.


rule serve:
    input:
        lambda wildcards: SWEEP.launch(Server.from_axes(wildcards)).needs,
    output:
        endpoint=service(f"{RESULTS}/servers/{BOOT_PATTERN}/endpoint.json"),
    log:
        f"{RESULTS}/logs/servers/{BOOT_PATTERN}/server.log",
    priority: lambda wildcards: PLAN.priority(Boot.from_axes(wildcards))
    conda:
        WORKFLOW_ENV
    threads: 1
    resources:
        **cluster.resources(lambda wildcards: PLAN.request(Boot.from_axes(wildcards))),
        device=lambda wildcards: PLAN.devices(Boot.from_axes(wildcards)),
    params:
        launch=f"{RESULTS}/servers/{BOOT_PATTERN}/{LAUNCH}",  # written when the run starts (specs.py)
        label=lambda wildcards: Server.from_axes(wildcards).label,
        boot=lambda wildcards: Boot.from_axes(wildcards).path,
        cells=lambda wildcards: len(PLAN.asked_on(Boot.from_axes(wildcards))),
    message:
        "Serving {wildcards.model} with {wildcards.method} k{wildcards.k}, max_model_len {wildcards.max_model_len}"
    shell:
        # exec: the SIGTERM that ends a service must reach the supervisor, not a shell around it
        'exec "$SPECDEC_PYTHON" -m scripts.serve --launch {params.launch:q} --label {params.label:q} '
        "--boot {params.boot:q} --cells {params.cells} --parent $PPID --endpoint {output.endpoint:q} --log {log:q}"
