"""The generated parts of documentation pages are up to date."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
GENERATED = ["docs/api.md", "docs/cli.md", "docs/formats.md", "docs/fuzzing.md", "docs/results.md", "docs/workloads.md"]


def test_the_pages_are_what_cog_writes() -> None:
    names = [page.relative_to(ROOT).as_posix() for page in sorted((ROOT / "docs").glob("*.md"))]
    assert [page for page in names if "<!--cog" in (ROOT / page).read_text(encoding="utf-8")] == GENERATED
    as_in_makefile = ["-U", "-n", "utf-8", "--markers=<!--cog cog--> <!--end-->"]
    check = ["--check", "--diff", "--check-fail-msg=run: make docs", *as_in_makefile]
    command = [sys.executable, "-m", "cogapp", *check, *GENERATED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
