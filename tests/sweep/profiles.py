"""Write and load sweep files of a few lines."""

from collections.abc import Callable
from pathlib import Path

from kfbench.sweep.definition.profile import Profile, load_profile

Load = Callable[..., Profile]

HEAD = 'title = "t"\nanalysis = "a"\n'
BROKER = {"formats": '["v1", "v2"]', "measure": '["broker"]'}
MODEL = {"measure": '["model"]', "formats": '["v2", "v3"]'}


def load_in(folder: Path, *parts: str, head: str = HEAD) -> Profile:
    """Write a sweep file into a folder, and load it."""
    path = folder / "sweep.toml"
    path.write_text(head + "".join(parts))
    return load_profile(path)


def block(text: str = "", *, name: str = "g", formats: str = '["v2", "v3"]', measure: str = '["bytes"]') -> str:
    head = f'[[grid]]\nname = "{name}"\ntitle = "t"\nanalysis = "prose of {name}"\n'
    axes = "" if "axes" in text or "workloads" in text else "axes = { batch_size = [1, 10] }\n"
    return f"{head}measure = {measure}\nformats = {formats}\n{text}\n{axes}"
