"""The driver reads the time of the system, which may be set back, only to tell it to people."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
OF_THE_SYSTEM = re.compile(
    r"\btime\.time(_ns)?\(|(?<!_)\btime_ns\(|\bdatetime\.(now|utcnow)|system_clock|CLOCK_REALTIME"
)
ALLOWED = {
    "native/src/driver/request_metrics.cpp": "time of the last request, for statistics",
    "src/tightship/driver/models/cached_sources.py": "compared with times of files",
    "src/tightship/driver/openai/application.py": "time of a model, for clients",
    "src/tightship/driver/openai/text_response.py": "time of an answer, for clients",
    "src/tightship/driver/oip/monitor.py": "times on the page, read once at the start",
    "src/tightship/driver/oip/tracing.py": "times of spans",
}


def test_deadlines_quotas_and_rates_use_clocks_that_are_not_set():
    folders = ("src/tightship/driver", "native/src/driver", "native/include/tightship/driver")
    files = [each for folder in folders for each in (ROOT / folder).rglob("*") if each.is_file()]
    found = {
        str(each.relative_to(ROOT))
        for each in files
        if each.suffix in {".py", ".cpp", ".hpp"} and OF_THE_SYSTEM.search(each.read_text("utf-8"))
    }
    assert found == set(ALLOWED)
