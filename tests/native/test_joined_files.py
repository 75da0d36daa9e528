"""Files that a build from nothing compiles together define no constant twice.

Builds with a compiler cache, and editable ones, keep files apart and do not see it; see
`native/unity.cmake`.
"""

import re
from collections import defaultdict
from pathlib import Path

NATIVE = Path(__file__).parents[2] / "native"
OWN_OPTIONS = re.compile(r"_(amx|avx2|avx512|vnni)\.cpp$")
"""Files for an instruction set, which CMake joins with none."""
CONSTANT = re.compile(r"^(?:inline )?constexpr [\w:<> ]*?(k[A-Z]\w*)\b", re.MULTILINE)


def alone():
    """Pattern of the files that are compiled by themselves, as the build has it."""
    unity = (NATIVE / "unity.cmake").read_text()
    listed = re.search(r'JOIN "\|" ALONE\n(.*?)"\)\n', unity, re.DOTALL)[1] + '"'
    return re.compile("(" + "|".join(re.findall(r'"([^"]+)"', listed)) + r")\.cpp$")


def repeated(texts):
    """Constants that several files of a folder define, with the files."""
    found = defaultdict(list)
    for path, text in texts.items():
        for name in CONSTANT.findall(text):
            found[path.parent, name].append(path.name)
    return {f"{folder}: {name}": files for (folder, name), files in found.items() if files[1:]}


def test_files_of_a_folder_define_no_constant_twice():
    pattern = alone()
    files = [each for part in ("src", "bind") for each in sorted((NATIVE / part).rglob("*.cpp"))]
    texts = {
        path.relative_to(NATIVE): path.read_text()
        for path in files
        if not pattern.search(str(path)) and not OWN_OPTIONS.search(path.name)
    }
    assert len(texts) > 100
    assert repeated(texts) == {}


def test_a_constant_of_two_files_is_found():
    text = "namespace {\nconstexpr int64_t kFloat = 4;\n}\n"
    folder = Path("src/kernels")
    assert repeated({folder / "a.cpp": text, Path("src/b.cpp"): text}) == {}
    assert repeated({folder / "a.cpp": text, folder / "b.cpp": text}) == {
        "src/kernels: kFloat": ["a.cpp", "b.cpp"]
    }
