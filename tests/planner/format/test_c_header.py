"""Headers of C: compiled, and printed by a program that includes them."""

import re
import shutil
import subprocess

import numpy as np
import pytest

from tests.planner.constrained.problems import column
from tests.planner.problems import problem
from tightship.planner import Bank, Constraints, Plan, place
from tightship.planner.format.c_header import SIGNIFICANT, write_c_header

COMPILERS = [each for each in ("cc", "c++") if shutil.which(each)]

NAMES = (
    "a/x", "a.x", "a_x", "a_x_2", "A.X", "7", "", "é", "/* */ ??/", "*/ int x; /*", "back\\slash",
    "new\nline", "int", "OFFSET", "m" * 90 + "1", "m" * 90 + "2", "n" * 90, "n" * 91, "a//b", "__b",
)  # fmt: skip
"""Names that are no identifiers, that become the same, or that end comments."""


def macros(path):
    """Names and values of the macros of a header."""
    found = re.findall(r"^#define (\w+) (\d+)", path.read_text(), re.MULTILINE)
    assert len(dict(found)) == len(found)
    return {name: int(value) for name, value in found}


def printed(folder, header, compiler):
    """Compile a program that includes a header twice, run it, and return what macros it prints."""
    names = list(macros(header))
    lines = "".join(f'  printf("%s %llu\\n", "{n}", (unsigned long long){n});\n' for n in names)
    code = f'#include "{header.name}"\n#include "{header.name}"\n#include <stdio.h>\n'
    language = "c" if compiler == "cc" else "c++"
    source = folder / "main.txt"
    source.write_text(f"{code}int main(void) {{\n{lines}  return 0;\n}}\n")
    flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-trigraphs", "-x", language]
    program = folder / "main"
    subprocess.run([compiler, *flags, source, "-o", program], check=True, cwd=folder)
    out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {name: int(value) for name, value in (line.split() for line in out.splitlines())}


def plan_of_names(names=NAMES):
    rows = [(8 * index + 8, 0, 2, 64) for index in range(len(names))]
    return place(problem(*rows, names=names))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_any_names_compile_to_the_offsets_of_the_plan(tmp_path, compiler):
    plan = plan_of_names()
    header = tmp_path / "plan.h"
    write_c_header(header, plan, "tightship place 'a */ b.csv' -o plan.h")
    found = printed(tmp_path, header, compiler)
    assert found == macros(header)
    assert found.pop("PLAN_BYTES") == plan.peak_bytes
    assert found.pop("PLAN_ALIGNMENT") == 64
    assert list(found.values()) == plan.offset_bytes.tolist()
    assert len({name[:SIGNIFICANT] for name in found}) == len(NAMES)
    assert all(name.startswith("PLAN_OFFSET_") and "__" not in name for name in found)
    assert header.read_text().isascii()


def test_the_command_is_in_a_comment_and_names_are_beside_their_offsets(tmp_path):
    write_c_header(tmp_path / "plan.h", plan_of_names(("in/put",)), "tightship place x.csv")
    lines = (tmp_path / "plan.h").read_text().splitlines()
    assert " * Made by: tightship place x.csv" in lines
    assert "#define PLAN_OFFSET_in_put 0 /* `in/put`, 8 bytes */" in lines


@pytest.mark.parametrize(
    ("name", "prefix"),
    [("my-net.h", "MY_NET"), ("2.h", "PLAN_2"), ("_.h", "PLAN"), ("é.h", "PLAN")],
)
def test_macros_begin_with_the_name_of_the_file(tmp_path, name, prefix):
    write_c_header(tmp_path / name, plan_of_names(("a",)))
    assert list(macros(tmp_path / name)) == [
        f"{prefix}_BYTES", f"{prefix}_ALIGNMENT", f"{prefix}_OFFSET_a"]  # fmt: skip


def test_buffers_without_names_have_their_index(tmp_path):
    write_c_header(tmp_path / "plan.h", place(problem((8, 0, 1, 1), (8, 0, 1, 1))))
    assert {"PLAN_OFFSET_0", "PLAN_OFFSET_1"} < macros(tmp_path / "plan.h").keys()


@pytest.mark.parametrize("compiler", COMPILERS)
def test_banks_have_their_peaks_and_buffers_their_bank(tmp_path, compiler):
    banks = (Bank("fast/ram", 16), Bank("dram", None, 3))
    allowed = np.array([[True, True], [False, True]])
    constraints = Constraints(column(-1, -1), banks=banks, allowed_banks=allowed)
    plan = place(problem((8, 0, 2, 4), (9, 0, 2, 1), constraints=constraints))
    write_c_header(tmp_path / "plan.h", plan)
    assert printed(tmp_path, tmp_path / "plan.h", compiler) == {
        "PLAN_BYTES": 17,
        "PLAN_ALIGNMENT": 4,
        "PLAN_BYTES_fast_ram": 8,
        "PLAN_BYTES_dram": 9,
        "PLAN_BANK_0": 0,
        "PLAN_BANK_1": 1,
        "PLAN_OFFSET_0": 0,
        "PLAN_OFFSET_1": 0,
    }


def test_a_plan_that_does_not_fit_stops_the_compiler(tmp_path):
    made = problem((8, 0, 2, 1), capacity_bytes=4)
    write_c_header(tmp_path / "plan.h", Plan(made, np.array([0]), "given", 8, "infeasible"))
    assert '#error "This plan does not fit 4 bytes."' in (tmp_path / "plan.h").read_text()
