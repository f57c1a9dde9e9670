"""The limits of control groups, in folders like those of Linux: versions 1 and 2, nested, without a limit."""

import math
from pathlib import Path

import psutil
import pytest

from kfbench.measure import container

MIB = 1 << 20
UNLIMITED_V1 = "9223372036854771712\n"
# The lines of /proc/self/cgroup, files of groups -> cores, MiB of the limit, MiB available
CASES = {
    "v2, in the container's own namespace": (
        "0::/\n",
        {"memory.max": f"{700 * MIB}\n", "memory.current": f"{300 * MIB}\n", "cpu.max": "50000 100000\n"},
        (0.5, 700, 400),
    ),
    "v2, limits of outer groups": (
        "0::/kubepods/pod/box\n",
        {
            "kubepods/memory.max": "max\n", "kubepods/cpu.max": "150000 100000\n",
            "kubepods/pod/memory.max": f"{512 * MIB}\n", "kubepods/pod/memory.current": f"{412 * MIB}\n",
            "kubepods/pod/memory.stat": f"anon 1\ninactive_file {50 * MIB}\n",
            "kubepods/pod/box/memory.max": f"{600 * MIB}\n", "kubepods/pod/box/memory.current": f"{10 * MIB}\n",
            "kubepods/pod/box/cpu.max": "max 100000\n",
        },
        (1.5, 512, 150),
    ),
    "v2, no limit": (
        "0::/user.slice\n",
        {"user.slice/memory.max": "max\n", "user.slice/memory.high": "max\n", "user.slice/cpu.max": "max 100000\n"},
        (math.inf, None, None),
    ),
    "v2, throttled before the limit": (
        "0::/a\n",
        {"a/memory.max": "max\n", "a/memory.high": f"{256 * MIB}\n", "a/memory.current": f"{300 * MIB}\n"},
        (math.inf, 256, 0),
    ),
    "v1": (
        "4:memory:/box\n3:cpuset:/\n2:cpu,cpuacct:/box\n0::/\n",
        {
            "memory/memory.limit_in_bytes": UNLIMITED_V1, "memory/memory.usage_in_bytes": "5\n",
            "memory/box/memory.limit_in_bytes": f"{700 * MIB}\n", "memory/box/memory.usage_in_bytes": f"{600 * MIB}\n",
            "memory/box/memory.stat": f"inactive_file 0\ntotal_inactive_file {100 * MIB}\n",
            "cpu,cpuacct/box/cpu.cfs_quota_us": "200000\n", "cpu,cpuacct/box/cpu.cfs_period_us": "100000\n",
        },
        (2.0, 700, 200),
    ),
    "v1, the path is the host's": (
        "4:memory:/docker/1234\n2:cpu:/docker/1234\n",
        {
            "memory/memory.limit_in_bytes": f"{700 * MIB}\n", "memory/memory.usage_in_bytes": f"{100 * MIB}\n",
            "cpu/cpu.cfs_quota_us": "25000\n", "cpu/cpu.cfs_period_us": "100000\n",
        },
        (0.25, 700, 600),
    ),
    "v1, no limit": (
        "4:memory:/\n1:cpu:/\n",
        {
            "memory/memory.limit_in_bytes": UNLIMITED_V1,
            "cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n",
        },
        (math.inf, None, None),
    ),
    "no groups": (None, {}, (math.inf, None, None)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_least_limit_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    groups, files, (core_limit, limit_mib, available_mib) = CASES[case]
    monkeypatch.setattr(container, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(container, "MOUNTED", tmp_path / "mounted")
    if groups is not None:
        (tmp_path / "cgroup").write_text(groups)
    for name, text in files.items():
        file = tmp_path / "mounted" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    unlimited = psutil.virtual_memory()
    assert container.core_limit() == core_limit
    assert container.cores() >= 1
    assert container.cores() <= math.ceil(min(core_limit, 1e9))
    assert container.memory_limit_bytes() == (None if limit_mib is None else limit_mib * MIB)
    if available_mib is None:
        assert container.available_bytes() > unlimited.available // 2
    else:
        assert container.available_bytes() == available_mib * MIB
        assert container.workers(MIB << 10) == 1
