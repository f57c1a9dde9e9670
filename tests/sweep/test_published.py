import pytest

from kfbench.measure.environment import host, published, published_command, without_hosts


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("/homes/anna/mine/sweep.toml", "sweep.toml"),
        ("--out=/homes/anna/reports", "--out=reports"),
        ("/", "."),
        ("mine/sweep.toml", "mine/sweep.toml"),
        ("local[2]", "local[2]"),
        ("--filter=workload=user-*/*", "--filter=workload=user-*/*"),
        ("--out=/homes/anna/run=3/reports", "--out=reports"),
        ("file:///homes/anna/mine/sweep.toml", "sweep.toml"),
        ("../clients/acme/sweep.toml", "sweep.toml"),
        ("--out=mine/../../acme", "--out=acme"),
        ("~anna/sweep.toml", "sweep.toml"),
        ("../..", "."),
        ("", ""),
        ("spark://there.corp:7077", f"spark://{host('there.corp')}:7077"),
        ("--master=k8s://https://10.1.2.3:443", f"--master=k8s://https://{host('10.1.2.3')}:443"),
    ],
)
def test_the_command_that_is_published_names_no_home_and_no_host(given: str, kept: str) -> None:
    assert published(given) == kept


def test_a_command_is_what_a_shell_would_take() -> None:
    words = ["kfbench", "run", "/homes/anna/two words.toml", "--filter", "batch_size>5"]
    assert published_command(words) == "kfbench run 'two words.toml' --filter 'batch_size>5'"


@pytest.mark.parametrize(
    ("url", "hidden"),
    [
        ("local[2,4]", "local[2,4]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("yarn", "yarn"),
        ("spark://one.corp:7077", "spark://ONE:7077"),
        ("spark://one.corp:7077,10.0.0.7:7078", "spark://ONE:7077,TWO:7078"),
        ("spark://[fe80::1]:7077", "spark://THREE:7077"),
        ("k8s://https://one.corp:443/of/anna", "k8s://https://ONE:443/of/anna"),
        ("spark://one.corp", "spark://ONE"),
        ("spark://one.corp:", "spark://FOUR"),
    ],
)
def test_a_master_is_told_without_its_hosts(url: str, hidden: str) -> None:
    names = {"ONE": "one.corp", "TWO": "10.0.0.7", "THREE": "[fe80::1]", "FOUR": "one.corp:"}
    for word, name in names.items():
        hidden = hidden.replace(word, host(name))
    assert without_hosts(url) == hidden
