"""Replacements for newer glibc functions in a wheel, also where the system has none."""

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "release/toolchain/newer_glibc.cpp"
PROGRAM = r"""#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <initializer_list>
#include <malloc.h>
#include <pthread.h>
extern "C" uint32_t arc4random() noexcept;
extern "C" void *__real_dlsym(void *, const char *);
extern "C" void *__wrap_dlsym(void *where, const char *name) {
    return ABSENT ? nullptr : __real_dlsym(where, name);
}
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int64_t now(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}
static int waited(clockid_t clock, int64_t nanoseconds) {
    const int64_t at = now(clock) + nanoseconds;
    const timespec deadline = {time_t(at / 1000000000), long(at % 1000000000)};
    return pthread_cond_clockwait(&condition, &mutex, clock, &deadline);
}
static void *wake(void *) {
    pthread_mutex_lock(&mutex);
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return nullptr;
}
int main() {
    pthread_mutex_lock(&mutex);
    for (clockid_t clock : {CLOCK_MONOTONIC, CLOCK_REALTIME}) {
        const int64_t start = now(CLOCK_MONOTONIC);
        if (waited(clock, 30000000) != ETIMEDOUT || now(CLOCK_MONOTONIC) - start < 29000000)
            return 1;
        if (waited(clock, -5000000000) != ETIMEDOUT)
            return 2;
        pthread_t thread;
        pthread_create(&thread, nullptr, wake, nullptr);
        if (waited(clock, 60000000000) != 0)
            return 3;
        pthread_join(thread, nullptr);
    }
    void *volatile large = malloc(64 << 20), *volatile small = malloc(1000);
    const struct mallinfo2 heap = mallinfo2();
    if (heap.hblkhd < (64 << 20) || heap.hblkhd > (65 << 20) || heap.arena == 0)
        return 4;
    free(large);
    free(small);
    uint32_t all = 0;
    for (int i = 0; i < 64; ++i)
        all |= arc4random();
    return all == UINT32_MAX ? 0 : 5;
}
"""


@pytest.mark.parametrize("absent", [0, 1], ids=["as here", "as on an old system"])
def test_waiting_and_counting_work(tmp_path: Path, absent: int) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    (tmp_path / "main.cpp").write_text(PROGRAM)
    flags = [
        "-std=c++20",
        "-O2",
        "-fvisibility=hidden",
        "-pthread",
        "-Wl,--wrap=dlsym",
        f"-DABSENT={absent}",
    ]
    built = subprocess.run(
        [compiler, *flags, SOURCE, tmp_path / "main.cpp", "-o", tmp_path / "main", "-ldl"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    assert subprocess.run([tmp_path / "main"], check=False, timeout=100).returncode == 0
