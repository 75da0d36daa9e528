"""The system's time is set an hour forward and back under a server: nothing that it does depends
on it."""

import json
import mmap
import shutil
import struct
import subprocess
import time

import numpy as np
import pytest

pytest.importorskip("uvicorn")
from tests.driver.oip.serve_process import serve_neg

LIBRARY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static long shift(void) {
    static const volatile long *seconds;
    if (seconds == 0) {
        const int file = open(getenv("SHIFTED_BY"), O_RDONLY);
        seconds = mmap(0, sizeof *seconds, PROT_READ, MAP_SHARED, file, 0);
    }
    return *seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (real == 0)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const int found = real(clock, now);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        now->tv_sec += shift();
    return found;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (result != 0)
        *result = found.tv_sec;
    return found.tv_sec;
}
"""
"""Shifts the time of a process by the seconds in a file that the variable names."""
HOUR_S = 3600


@pytest.fixture
def shifted(tmp_path):
    """Variables of a process whose time can be set, and a function that shifts it by seconds."""
    compiler = shutil.which("cc") or pytest.skip("needs a C compiler")
    source, library, file = (tmp_path / name for name in ("clock.c", "clock.so", "seconds"))
    source.write_text(LIBRARY)
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    file.write_bytes(bytes(8))
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 8) as seconds:

        def shift(by_s):
            seconds[:] = struct.pack("q", by_s)

        yield f"export LD_PRELOAD={library} SHIFTED_BY={file}", shift


def infer(server, timeout_us):
    """Have a model run; the status of the answer."""
    tensor = {"name": "x", "shape": [1 << 16], "datatype": "FP32"}
    tensor["parameters"] = {"binary_data_size": 1 << 18}
    said = json.dumps({"inputs": [tensor], "parameters": {"timeout": timeout_us}}).encode()
    raw = np.zeros(1 << 16, np.float32).tobytes()
    headers = {"Inference-Header-Content-Length": str(len(said))}
    return server.ask("POST", "/v2/models/neg/infer", said + raw, **headers)[0]


def test_deadlines_rates_and_samples_do_not_follow_the_systems_time(tmp_path, shifted):
    before, shift = shifted
    with serve_neg(tmp_path, "--rate-limit", "40/h", before=before) as server:
        last_ms = server.get("/status")[1]["now_ms"]
        for by_s in (HOUR_S, -HOUR_S):
            shift(by_s)
            assert infer(server, 20_000_000) == 200
            said = server.get("/status")[1]
            assert last_ms <= said["now_ms"] < last_ms + 1000 * HOUR_S / 2
        until = time.monotonic() + 30
        while not server.get(f"/status?since={said['now_ms']}")[1]["samples"]:
            assert time.monotonic() < until  # it goes on to sample
            time.sleep(0.5)
        assert 429 in [server.get("/v2")[0] for _ in range(40)]
        shift(HOUR_S)
        assert server.get("/v2")[0] == 429  # no hour has passed
