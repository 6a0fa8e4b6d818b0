"""A fresh Debian in a folder: made by debootstrap, entered by chroot, removed again."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

# What this machine's package managers are told: proxies, mirrors and certificates.
TOLD = ("PIP_", "UV_", "http_proxy", "https_proxy", "no_proxy")
FILES = ("/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
APT = Path("/etc/apt/apt.conf.d")
MIRROR = "http://deb.debian.org/debian"
SCRIPTS = Path("/usr/share/debootstrap/scripts")


class CannotMake(Exception):
    """No fresh Debian can be had here; the message says what is missing."""


@dataclass(frozen=True)
class Step:
    command: str
    seconds: float
    code: int
    output: str  # stdout and stderr
    megabytes: float  # that the root grew by


def missing() -> str:
    """What a root needs and is not here; empty: nothing."""
    if os.geteuid() != 0:
        return "root: only root may enter a chroot"
    if not shutil.which("debootstrap"):
        return "debootstrap: apt-get install debootstrap"
    return ""


def told() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(TOLD) or name.lower().startswith(TOLD)}


class Root:
    """With `suite`, a name of a Debian release, and packages beside the smallest system. `kept` is a
    folder that stays, for other times, and is taken as it is where it is there; else all is removed at
    the end. `alone`: nothing of this machine's environment comes along, and no network is needed."""

    def __init__(
        self, suite: str, packages: tuple[str, ...] = (), *, kept: Path | None = None, alone: bool = False
    ) -> None:
        if lacks := missing():
            raise CannotMake(lacks)
        self.is_kept, self.environment = kept is not None, {} if alone else told()
        self.folder = kept or Path(tempfile.mkdtemp(prefix=f"attnbench-{suite}-"))
        if not (kept and kept.is_dir()):
            self._make(suite, packages)
        if not alone:
            self._tell()
        subprocess.run(["mount", "-t", "proc", "proc", self.folder / "proc"], check=True)

    def _make(self, suite: str, packages: tuple[str, ...]) -> None:
        included = ",".join(("ca-certificates", *packages))
        # A suite that is newer than debootstrap is made as unstable is.
        script = [] if (SCRIPTS / suite).exists() or not SCRIPTS.exists() else [SCRIPTS / "sid"]
        done = subprocess.run(
            ["debootstrap", "--variant=minbase", f"--include={included}", suite, self.folder, MIRROR, *script],
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode != 0:
            shutil.rmtree(self.folder, ignore_errors=True)
            last = (done.stdout + done.stderr).strip().splitlines()[-1:]
            raise CannotMake(f"debootstrap {suite}: {' '.join(last)}")

    def _tell(self) -> None:
        for file in FILES:
            if Path(file).exists():
                target = self.folder / file.lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
        for file in APT.glob("*"):
            if any(word in file.read_text() for word in ("Proxy", "Acquire::http")):
                shutil.copyfile(file, self.folder / str(APT).lstrip("/") / file.name)
        for value in self.environment.values():  # folders of packages
            for word in value.split():
                if word.startswith("/") and Path(word).is_dir():
                    shutil.copytree(word, self.folder / word.lstrip("/"), dirs_exist_ok=True)

    def __enter__(self) -> Root:
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", self.folder / "proc"], check=False)
        if not self.is_kept:
            shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, command: str, cwd: str = "/", timeout: float = 3600, path: str = "") -> Step:
        """A command of a shell, which reads nothing; `cwd` is made where it is not there. `path` comes before PATH."""
        (self.folder / cwd.lstrip("/")).mkdir(parents=True, exist_ok=True)
        environment = {
            "PATH": path + "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
            "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", **self.environment,
        }  # fmt: skip
        before, start = self.megabytes(), time.monotonic()
        done = subprocess.run(
            ["chroot", self.folder, "sh", "-c", f'cd "$0" && {command}', cwd], env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=timeout,
        )  # fmt: skip
        seconds = time.monotonic() - start
        return Step(command, seconds, done.returncode, done.stdout, self.megabytes() - before)

    def megabytes(self) -> float:
        done = subprocess.run(
            ["du", "-s", "-x", "-B1", self.folder], capture_output=True, text=True
        )
        return int(done.stdout.split()[0]) / 1e6

    def put_clone(self, repository: Path, target: str) -> None:
        """The committed files, as a clone has them."""
        to = self.folder / target.lstrip("/")
        subprocess.run(["git", "clone", "-q", "--no-hardlinks", repository, to], check=True)
