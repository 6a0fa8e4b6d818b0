"""A Slurm of two nodes on this machine, in a temporary folder: munged, slurmctld and two slurmd, ended whatever happens."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

NEEDED = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}
NODES = ("node1", "node2")
CPUS = 2  # of each node
PATH = "/usr/sbin:/sbin:" + os.environ.get("PATH", "")  # daemons are there

# Seconds are the least that Slurm takes, so that a lost node is noticed and a requeued job starts soon.
CONFIG = """ClusterName=attn
SlurmctldHost=localhost(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000,sched_interval=1
ReturnToService=2
SlurmdTimeout=3
BatchStartTimeout=1
MessageTimeout=2
KillWait=5
{nodes}
PartitionName=all Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """Why no cluster can be started here; "" where one can."""
    packages = [
        package for name, package in NEEDED.items() if not shutil.which(name, path=PATH)
    ]
    return f"Slurm is missing (Debian packages {' '.join(packages)})" if packages else ""


def free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    try:
        for each in held:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


def until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(0.1)


class Cluster:
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="attn-slurm-"))
        self.folder.chmod(0o711)  # munge asks for a path that everyone may follow
        self.daemons: dict[str, subprocess.Popen] = {}
        self.environment = {
            **os.environ,
            "PATH": PATH,
            "SLURM_CONF": str(self.folder / "slurm.conf"),
        }

    def start(self) -> None:
        for name in ("munge", "state"):
            (self.folder / name).mkdir(mode=0o711)
        controller, *ports = free_ports(1 + len(NODES))
        nodes = "\n".join(
            f"NodeName={name} NodeAddr=127.0.0.1 Port={port} CPUs={CPUS} RealMemory=1000 Feature=kind"
            for name, port in zip(NODES, ports)
        )
        config = CONFIG.format(
            user=getpass.getuser(), folder=self.folder, port=controller, nodes=nodes, names=",".join(NODES)
        )
        (self.folder / "slurm.conf").write_text(config)
        self._start_munge()
        self._start("slurmctld", "slurmctld", "-D")
        for name in NODES:
            self.start_node(name)
        until(lambda: self.said("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == str(len(NODES)), 30, "idle nodes")

    def _start_munge(self) -> None:
        place = self.folder / "munge"
        key = place / "key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        files = [f"--{name}-file={place / name}" for name in ("key", "pid", "log", "seed")]
        socket_ = place / "socket"
        self._start("munged", "munged", "--foreground", "--force", f"--socket={socket_}", *files)
        until(socket_.exists, 10, "munge's socket")

    def _start(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as out:
            self.daemons[name] = subprocess.Popen(
                [shutil.which(command[0], path=PATH), *command[1:]],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.environment, start_new_session=True,
            )  # fmt: skip

    def start_node(self, name: str) -> None:
        self._start(name, "slurmd", "-D", "-N", name)

    def processes(self, mark: str = "") -> list[int]:
        """Those of this Slurm, by the folder's name in their environment."""
        marks = [f"SLURM_CONF={self.folder}/", mark]
        found = []
        for each in Path("/proc").glob("[0-9]*/environ"):
            try:
                text = each.read_bytes()
            except OSError:
                continue
            if all(mark.encode() in text for mark in marks):
                found.append(int(each.parent.name))
        return [pid for pid in found if pid != os.getpid()]

    def kill_node(self, name: str) -> None:
        """As when it loses power: the daemon, then those that watch its jobs, then the jobs."""
        daemon = self.daemons.pop(name)
        jobs = self.processes(f"SLURMD_NODENAME={name}\0")
        watching = {parent for parent in map(_parent, jobs) if _command(parent).startswith("slurmstepd")}
        for pid in (daemon.pid, *watching, *jobs):
            _kill(pid)
        daemon.wait()

    def run(self, *command: str | Path, **how) -> subprocess.CompletedProcess:
        return subprocess.run(
            list(map(str, command)), capture_output=True, text=True, env=self.environment, timeout=60, **how
        )

    def said(self, *command: str) -> str:
        return self.run(*command).stdout

    def stop(self) -> None:
        for name in reversed(list(self.daemons)):
            _kill(self.daemons[name].pid)
        for daemon in self.daemons.values():
            daemon.wait()
        for _ in range(20):  # a job's end starts others
            left = self.processes()
            for pid in left:
                _kill(pid)
            if not left:
                break
            time.sleep(0.05)
        shutil.rmtree(self.folder, ignore_errors=True)


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])
    except OSError:
        return 0


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
