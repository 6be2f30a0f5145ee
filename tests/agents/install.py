"""Installs what is driven, each package into a folder of its own that is reused.

    install.py FOLDER npm NAME VERSION    an npm package
    install.py FOLDER pip NAME VERSION    a Python package, to be put on PYTHONPATH
    install.py FOLDER cargo NAME VERSION  a Rust program, built from its source

A folder is there whole or not at all. Prints it, or ends with 1 and one line that says
why there is none.
"""

import shutil
import subprocess
import sys
from pathlib import Path


class Unavailable(Exception):
    """The package cannot be installed here."""


def installed(root: Path, kind, name, version):
    """The folder of a package, installed when it is not there."""
    folder = root / f"{name.strip('@').replace('/', '-')}-{version}"
    if not folder.is_dir():
        part = folder.with_name(folder.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        INSTALL[kind](part, name, version)
        part.rename(folder)
    return folder


def npm(folder, name, version):
    quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    # Else it takes minutes to find out that there is no registry.
    patience = ["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=30000"]
    run(["npm", "install", "--prefix", str(folder), *quiet, *patience, f"{name}@{version}"])


def pip(folder, name, version):
    # Not an environment of `venv`, whose programs name the folder that they were made in.
    quiet = ["--quiet", "--disable-pip-version-check", "--root-user-action=ignore", "--retries=1", "--timeout=30"]
    run([sys.executable, "-m", "pip", "install", *quiet, "--target", str(folder), f"{name}=={version}"])


def cargo(folder, name, version):
    run(["cargo", "install", "--quiet", "--locked", "--root", str(folder), "--version", version, name])


INSTALL = {"npm": npm, "pip": pip, "cargo": cargo}


def run(command):
    """Runs an installer, and keeps the last line of what it complained about."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1800)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(str(error)) from None
    if done.returncode != 0:
        complaint = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise Unavailable(f"{command[0]} ended with {done.returncode}: {complaint[0] if complaint else 'no word'}")


if __name__ == "__main__":
    try:
        print(installed(Path(sys.argv[1]).absolute(), *sys.argv[2:5]))
    except Unavailable as reason:
        sys.exit(str(reason))
