"""Build and check an sdist and wheels; `--draft` makes one wheel of any tree, for a trial.

    python3 -m venv build/release && build/release/bin/pip install -r release/requirements.txt
    build/release/bin/python -m release

Refuses a tree with changes and a version that has a tag. The files go to a new folder, `dist`;
uploading them is left to `twine upload`, by hand. If a test fails, what was built of the commit
stays in `build/released`, and the next start goes on with it.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from release import source
from release.commands import ReleaseError, announce, run, tool
from release.installed import LARGE, SMOKE, Trial, size, tried
from release.interpreters import answered, interpreter
from release.kept import kept
from release.wheel import build_wheel

ROOT = Path(__file__).parents[1]
BUILT_FOR = ("3.11", "3.12")
"""The wheel of 3.12 has the stable ABI and serves every later version."""
TRIED_ON = {"3.11": ("3.11", LARGE), "3.12": ("3.12", SMOKE), "3.13": ("3.12", SMOKE)}
"""Wheel and tests of each version of Python."""
SECONDS_MAX = 30
"""Processor time of an installation; the time on a clock depends on what else the machine does."""


def draft(out: Path, work: Path) -> list[Trial]:
    """Build one wheel, of this Python's version, from a tree in any state, and try it briefly."""
    here = Path(sys.executable)
    version = answered(here)
    tree = sdist_tree(ROOT, out, work)
    wheel = wheel_for(version, here, tree, out, work)
    return [tried(wheel, tree, here, version, work / "trial", SMOKE)]


def release(out: Path, work: Path) -> list[Trial]:
    """Build all files of the last commit, and try each as thoroughly as it deserves."""
    source.check_tree(ROOT)
    pythons = {version: interpreter(version) for version in TRIED_ON}
    copy = source.copied(ROOT, work / "tree")
    tree = sdist_tree(copy, out, work)
    source.check_version(ROOT, source.version_of(tree))
    wheels = {each: wheel_for(each, pythons[each], tree, out, work) for each in BUILT_FOR}
    trials = [
        tried(wheels[built_for], copy, pythons[version], version, work / f"trial-{version}", tests)
        for version, (built_for, tests) in TRIED_ON.items()
    ]
    slow = [trial for trial in trials if trial.processor_seconds > SECONDS_MAX]
    if slow:
        raise ReleaseError(
            f"{slow[0].wheel} took {slow[0].processor_seconds:.0f} s of a processor to install, "
            f"more than {SECONDS_MAX} s. Find what became larger."
        )
    return trials


def sdist_tree(tree: Path, out: Path, work: Path) -> Path:
    """Build the sdist and return the folder in which it is unpacked."""
    for name in ("sdist-new", "sdist"):
        (work / name).mkdir()

    def build() -> Path:
        announce("build the sdist")
        return source.build_sdist(tree, work / "sdist-new")

    sdist = kept(out, "*.tar.gz", build)
    return source.unpacked(sdist, work / "sdist")


def wheel_for(version: str, python: Path, tree: Path, out: Path, work: Path) -> Path:
    """Build the wheel of a version of Python from an unpacked sdist."""
    made = work / version / "made"
    made.mkdir(parents=True)

    def build() -> Path:
        announce(f"build the wheel for Python {version}; it takes minutes")
        return build_wheel(tree, python, work / version, made)

    return kept(out, f"*-cp{version.replace('.', '')}-*.whl", build)


def kept_folder() -> Path:
    """Return the folder of what is built of the last commit."""
    return ROOT / "build" / "released" / run(["git", "rev-parse", "HEAD"], ROOT).strip()


def main() -> None:
    """Run what the command line asks for; end with 1 and the reason where it fails."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__.splitlines()[0])
    parser.add_argument("--draft", action="store_true", help="one wheel of a tree in any state")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="a new folder (dist)")
    options = parser.parse_args()
    out: Path = options.out.resolve()
    if out.exists():
        parser.error(f"`{out}` exists; remove it, or name another folder with `--out`")
    try:
        with tempfile.TemporaryDirectory(prefix="release") as folder:
            built = Path(folder, "out") if options.draft else kept_folder()
            built.mkdir(parents=True, exist_ok=True)
            trials = (draft if options.draft else release)(built, Path(folder))
            run([*tool("twine"), "check", "--strict", *sorted(built.iterdir())], built)
            shutil.move(built, out)
    except ReleaseError as error:
        sys.exit(f"release: {error}")
    for path in sorted(out.iterdir()):
        print(f"{path.name}  {size(path)}")
    for trial in trials:
        print(
            f"Python {trial.python}: installed in {trial.seconds:.1f} s "
            f"({trial.processor_seconds:.1f} s of a processor); {trial.tests}"
        )


if __name__ == "__main__":
    main()
