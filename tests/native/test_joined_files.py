"""Files that a build from nothing compiles together define no name twice.

Builds with a compiler cache, and editable ones, keep files apart and do not see it; see
`native/unity.cmake`.
"""

import re
from collections import defaultdict
from pathlib import Path

NATIVE = Path(__file__).parents[2] / "native"
APART = re.compile(r"_(absent|amx|avx2|avx512|vnni)\.cpp$")
"""Files for an instruction set, which CMake joins with none, or compiled in another's place."""
DEFINED = re.compile(
    r"^(?:(?:inline )?constexpr [\w:<> ]*?(k[A-Z]\w*)\b"
    r"|(?:struct|class|enum class) (\w+)(?: final)?(?: :[^;{]*)? \{)",
    re.MULTILINE,
)
"""Constants, and types, at the margin: those of a namespace."""
FUNCTION = re.compile(
    r"^(?!template|struct|class|namespace|#)[\w:][^\n;={}()]* [*&]?(\w+)\(([^{};]*?)\)[\w ]*\{",
    re.MULTILINE,
)
"""Functions at the margin, with their parameters."""
PARAMETER_NAME = re.compile(r"\s*\b\w+(?=,|$)")
NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.MULTILINE)


def alone():
    """Pattern of the files that are compiled by themselves, as the build has it."""
    unity = (NATIVE / "unity.cmake").read_text()
    listed = re.search(r'JOIN "\|" ALONE\n(.*?)"\)\n', unity, re.DOTALL)[1] + '"'
    return re.compile("(" + "|".join(re.findall(r'"([^"]+)"', listed)) + r")\.cpp$")


def repeated(texts):
    """Constants, types and functions that several files of a folder define, with the files.

    Headers that the core installs belong to the folder of their sources.
    """
    found = defaultdict(set)
    for path, text in texts.items():
        folder = str(path.parent).replace("include/tightship", "src")
        space = NAMESPACE.search(text)
        for constant, kind in DEFINED.findall(text):
            found[folder, space and space[1], constant or kind].add(path.name)
        for name, parameters in FUNCTION.findall(text):
            types = PARAMETER_NAME.sub("", " ".join(parameters.split()))
            found[folder, space and space[1], f"{name}({types})"].add(path.name)
    return {
        f"{folder}: {name}": sorted(files)
        for (folder, _, name), files in found.items()
        if len(files) > 1 and any(each.endswith(".cpp") for each in files)
    }


def test_files_of_a_folder_define_no_name_twice():
    pattern = alone()
    files = [
        *(each for part in ("src", "bind") for each in sorted((NATIVE / part).rglob("*.cpp"))),
        *sorted((NATIVE / "include").rglob("*.hpp")),
    ]
    texts = {
        path.relative_to(NATIVE): path.read_text()
        for path in files
        if not pattern.search(str(path)) and not APART.search(path.name)
    }
    assert len(texts) > 100
    assert repeated(texts) == {}


def test_a_type_of_a_file_and_a_header_is_found():
    texts = {
        Path("src/kernels/a.cpp"): "namespace {\nstruct Taps {\n    int n;\n};\n}\n",
        Path("include/tightship/kernels/b.hpp"): "struct Taps {\n};\nstruct Other;\n",
    }
    assert repeated(texts) == {"src/kernels: Taps": ["a.cpp", "b.hpp"]}


def test_a_constant_of_two_files_is_found():
    text = "namespace {\nconstexpr int64_t kFloat = 4;\n}\n"
    folder = Path("src/kernels")
    assert repeated({folder / "a.cpp": text, Path("src/b.cpp"): text}) == {}
    assert repeated({folder / "a.cpp": text, folder / "b.cpp": text}) == {
        "src/kernels: kFloat": ["a.cpp", "b.cpp"]
    }


def test_a_function_of_two_files_is_found_unless_it_takes_other_types():
    texts = {
        Path("bind/run/a.cpp"): "namespace {\nvoid pools(nb::module_ &module) {\n}\n}\n",
        Path("bind/run/b.cpp"): "namespace {\nvoid pools(nb::module_ &into) {\n}\n}\n",
        Path("bind/run/c.cpp"): "namespace {\nvoid pools(Values &values) {\n}\n}\n",
    }
    assert repeated(texts) == {"bind/run: pools(nb::module_ &)": ["a.cpp", "b.cpp"]}
