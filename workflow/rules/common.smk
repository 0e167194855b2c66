# Needs: a config file (config/config.yaml unless --configfile names another; a config file is complete in itself).
# Makes: the names the other rules use. SWEEP is what is wanted, PLAN what of it is still to be done.
import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.io import IOFile
from snakemake.logging import logger
from snakemake.utils import validate

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT))
# Jobs run `python -m scripts.NAME` with the interpreter that runs snakemake.
os.environ.update(
    SPECDEC_PYTHON=sys.executable,
    PYTHONSAFEPATH="1",  # not the working directory, which may have a folder called scripts
    PYTHONPATH=os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
)

from scripts.lib import admission, chatter, cluster, device, interrupts, progress, run_lock, slurm, workers
from scripts.lib.cell import BOOT_PATTERN, CELL_PATTERN, TRY, WILDCARDS, Boot, Cell, Server
from scripts.lib.config import ConfigError, load_schema, read_yaml, restore_types
from scripts.lib.config_errors import explain
from scripts.lib.deploy.scheduled import applicable, read_scheduled, with_schedules
from scripts.lib.deploy.scheduled import to_json as scheduled_json
from scripts.lib.plan import render as render_plan
from scripts.lib.planning import Plan, check_targets
from scripts.lib.sources import source_digest
from scripts.lib.specs import LAUNCH, SPEC, write_specs
from scripts.lib.sweep import load_sweep
from scripts.lib.why import render as render_why

if not workflow.output_settings.verbose:
    logger.addFilter(chatter.worth_reading)

RESULTS = "results"
CELLS = f"{RESULTS}/cells"
POINTER = f"{CELLS}/{CELL_PATTERN}/evidence.json"
WORKFLOW_ENV = str(ROOT / "envs/workflow.yaml")
CONFIG_SCHEMA = ROOT / "workflow/schemas/config.schema.yaml"
SCHEDULE = f"{RESULTS}/deploy/schedule.json"  # derived by an earlier run, or not there
CONFIG_DIRS = ["config", str(ROOT / "config")]
PROGRESS = Path(RESULTS, "progress.json").absolute()

if not workflow.overwrite_configfiles:

    configfile: "config/config.yaml" if Path("config/config.yaml").exists() else ROOT / "config/config.yaml"


try:
    for path in workflow.configfiles:
        read_yaml(Path(path))  # Snakemake takes the last of two equal keys; here they are an error
    restore_types(config, workflow.config_settings.config, load_schema("config"))
    validate(config, str(CONFIG_SCHEMA))
    SWEEP = load_sweep(config, [Path(folder) for folder in CONFIG_DIRS])
    SCHEDULED = applicable(SWEEP, read_scheduled(Path(SCHEDULE)))
    SWEEP = with_schedules(SWEEP, SCHEDULED)
    # As typed: Snakemake tells the targets only after parsing, and an error in an input function comes with a traceback.
    check_targets(SWEEP, sys.argv[1:], f"{CELLS}/")
except ConfigError as error:
    raise WorkflowError(str(error)) from None
except WorkflowError:
    raise WorkflowError(explain(config, CONFIG_SCHEMA)) from None
PLAN = Plan(SWEEP, CELLS, progress.cells_of_run(PROGRESS) if workflow.remote_exec else ())
SCHEDULE_CELLS = [cell for schedule in SCHEDULED for cell in schedule.cells(SWEEP.config["repeats"])]


def made_first(needed, output):
    """`needed`, input of the rule that makes `output`. Snakemake makes a missing file only for what has to run anyway, and once
    .snakemake is lost it takes a file that is there for what is asked now, whatever it was made from. So `output` has to run, as
    with --forcerun, when one of `needed` is missing and when nothing is remembered of it.
    """
    if (
        not all(Path(file).exists() for file in needed)
        or workflow.persistence.metadata(IOFile(output)) is None
    ):
        workflow.dag.forcefiles.add(output)
    return needed


wildcard_constraints:
    **WILDCARDS,


# GPUs of this machine that servers use at once, where jobs run locally; a cluster's scheduler counts its GPUs itself.
resource_scopes:
    device="local",


os.environ[progress.PROGRESS_VARIABLE] = str(PROGRESS)
# What turns evidence into tables: a change to any of it makes them anew, and measures nothing.
LIBRARY = source_digest(ROOT / "scripts")


onstart:
    interrupts.forward_to_jobs()
    workers.make_room(workflow.scheduler, len(PLAN.asked) + 2 * len(PLAN.asked_boots))
    try:
        run_lock.hold(Path(RESULTS, ".run.lock"))
        devices = workflow.scheduler.global_resources.get("device") if workflow.local_exec else None
        progress.begin(PROGRESS, PLAN.work(devices))
        if devices:
            for words in workers.kept_idle(devices, workflow.cores, map(PLAN.devices, PLAN.asked_boots)):
                progress.say(words)
        write_specs(PLAN, Path(CELLS), Path(RESULTS, "servers"))
        if workflow.local_exec:
            for words in admission.ahead(PLAN.device_requests, device.usable_gpus):
                progress.say(words)
        if PLAN.asked and workflow.executor_plugin.name == "slurm":
            slurm.accompany(
                PLAN.requests,
                PLAN.uncounted,
                workflow.executor_settings.logdir,
                logger,
                lambda rule: workflow.is_local(workflow.get_rule(rule)),
            )
    except slurm.Refused as refused:
        raise WorkflowError(str(refused)) from None
    except run_lock.Busy as busy:
        if PLAN.asked:  # plan and why may look on while another run measures
            raise WorkflowError(str(busy)) from None


onerror:
    progress.say(progress.closing_line(PROGRESS))
