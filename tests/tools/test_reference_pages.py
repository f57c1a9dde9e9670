"""docs/api.md and docs/cli.md show the current docstrings and help."""

from tools.reference_pages import DOCS, api, cli


def test_the_pages_are_up_to_date() -> None:
    assert (DOCS / "api.md").read_text(encoding="utf-8") == api(), "run make reference"
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == cli(), "run make reference"


def test_every_broker_path_has_an_entry() -> None:
    assert "### mirror\n\n```python\nfrom kfbench.broker.mirror import mirror\n\nmirror(log: EncodedLog | Any" in api()
