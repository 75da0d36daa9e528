"""Memory that is left, on machines and in groups that folders of text stand for."""

import pytest

from tightship.available import available_bytes

GROUP = {"memory.max": "1000", "memory.current": "700", "memory.stat": "anon 5\ninactive_file 50\n"}


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({}, None),
        ({f"g/h/{name}": text for name, text in GROUP.items()}, 350),
        ({f"g/{name}": text for name, text in GROUP.items()}, 350),
        (GROUP, 350),
        (GROUP | {"g/memory.max": "max", "g/memory.current": "1"}, 350),
        (GROUP | {"g/memory.max": "90", "g/memory.current": "80"}, 10),
    ],
)
def test_what_is_left_is_the_least_of_the_machine_and_its_groups(tmp_path, files, wanted):
    said = {"proc/meminfo": "MemFree: 1 kB\nMemAvailable: 4 kB\n", "proc/self/cgroup": "0::/g/h\n"}
    said |= {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    for name, text in said.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert available_bytes(tmp_path) == (4096 if wanted is None else wanted)


def test_an_older_group_has_a_folder_of_its_own(tmp_path):
    group = tmp_path / "sys/fs/cgroup/memory/g"
    group.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("4:cpu,memory:/g\n3:pids:/g\n")
    (group / "memory.limit_in_bytes").write_text("1000\n")
    (group / "memory.usage_in_bytes").write_text("900\n")
    (group / "memory.stat").write_text("total_inactive_file 7\n")
    assert available_bytes(tmp_path) == 107
    assert available_bytes(tmp_path / "nothing") > 1 << 40
