"""The command contribute: the file of a machine, for the report's comparison of machines."""

from pathlib import Path
from typing import Annotated

import typer

from kfbench.cli.app import app
from kfbench.cli.options import check_new_file, existing
from kfbench.cli.output import busy, complain, contents_lines, print_result, write_whole
from kfbench.errors import KfbenchError


@app.command()
def contribute(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run or of a report.")],
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file, such as datasets/machines/xeon-avx512.json.")],
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> None:
    """Write the file of your machine: CPU ratios of a run, the processor, hashes of sizes; no name of host or user."""
    from kfbench.machines.contribute import machine_file
    from kfbench.machines.file import read_folder, to_json
    from kfbench.store import open_run
    from kfbench.text import counted

    known = {each.code for name, each in read_folder().sound.items() if name != out.stem} - {None}
    existing(run)
    check_new_file(out, force, [])
    if out.resolve().is_relative_to(run.resolve()):
        raise KfbenchError(f"{out}: is in the folder of the run")
    with busy("computing ratios"):
        made = machine_file(open_run(run))
        data = to_json(made)
    write_whole(out, data)
    machine, sizes = made.machine, sum(each.rows for each in made.sizes)
    lines = [
        f"{out}: {len(data):,} bytes, {counted(len(made.ratios), 'ratio')}, hashes of {counted(sizes, 'size')}",
        f"{machine.cpu}, kernels with {machine.instructions.words}; {made.noise.words}",
        *contents_lines(made.contains, made.never_contains),
    ]
    print_result("\n".join(lines))
    if made.code not in known:
        complain("no other machine's file is of the same code of kfbench: a report compares this one with none")
