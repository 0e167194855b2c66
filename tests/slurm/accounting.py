"""The test cluster with an accounting database: MariaDB and slurmdbd, as children of this process like the other daemons."""

from __future__ import annotations

import shutil
import socket
import subprocess

from tests.processes import wait_for
from tests.slurm import cluster
from tests.slurm.cluster import Cluster, free_port

PROGRAMS = ("slurmdbd", "mariadbd", "mariadb-install-db", "mariadb", "sacctmgr", "sacct")
ACCOUNT = "lab"
DATABASE = """
AuthInfo=socket={folder}/munge/socket
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=slurm
StoragePass=slurm
"""
SETTINGS = """
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge/socket
AccountingStorageEnforce=associations
"""


def missing() -> str | None:
    """Why no such cluster can be started here; None when it can."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=cluster.PATH) is None]
    need = f"not installed: {', '.join(absent)} (Debian: slurmdbd, mariadb-server-core, mariadb-client-core)"
    return cluster.missing() or (need if absent else None)


class AccountingCluster(Cluster):
    """This user may run jobs under `ACCOUNT` alone."""

    def _munge(self) -> None:
        super()._munge()
        database = self._database()
        port = free_port()
        config = self.folder / "slurmdbd.conf"
        config.write_text(
            DATABASE.format(folder=self.folder, host=socket.gethostname(), port=port, database=database)
        )
        config.chmod(0o600)
        slurm = self.folder / "slurm.conf"
        none = "AccountingStorageType=accounting_storage/none"
        slurm.write_text(slurm.read_text().replace(none, SETTINGS.format(folder=self.folder, port=port)))
        self._start("slurmdbd", "slurmdbd", "-D")
        wait_for(lambda: self._succeeds("sacctmgr", "list", "cluster"), 60, "slurmdbd")
        self.command("sacctmgr", "-i", "add", "cluster", "test")
        self.command("sacctmgr", "-i", "add", "account", ACCOUNT, "cluster=test")
        self.command("sacctmgr", "-i", "add", "user", "root", f"account={ACCOUNT}", "cluster=test")

    def _database(self) -> int:
        """Start MariaDB; returns its port."""
        data, at, port = self.folder / "data", f"--socket={self.folder}/database", free_port()
        data.mkdir()
        self.command(
            "mariadb-install-db",
            "--user=root",
            f"--datadir={data}",
            "--auth-root-authentication-method=normal",
        )
        options = [f"--datadir={data}", at, f"--port={port}", "--bind-address=127.0.0.1", "--user=root"]
        self._start("mariadbd", "mariadbd", "--no-defaults", *options)
        client = ["mariadb", "--no-defaults", "--user=root", at]
        wait_for(lambda: self._succeeds(*client, "--execute=SELECT 1"), 60, "MariaDB")
        user = "'slurm'@'localhost'"
        self.command(
            *client, f"--execute=CREATE USER {user} IDENTIFIED BY 'slurm'; GRANT ALL ON *.* TO {user}"
        )
        return port

    def _succeeds(self, *words: str) -> bool:
        return subprocess.run(words, env=self.environment, capture_output=True).returncode == 0
