"""The command migrate: the phases and costs of a rollout of a new record format."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kfbench.cli.app import app
from kfbench.cli.damage import fail_on_damage
from kfbench.cli.options import AsJson, PriceOptions, TrafficOptions, check_names, with_option_groups
from kfbench.cli.output import print_answer, tracked
from kfbench.errors import IllegalCombination, InvalidConfig

_share = partial(typer.Option, metavar="SHARE")


@dataclass(frozen=True, kw_only=True)
class RolloutOptions:
    """Shares of old clients, old data and canary leaders. The defaults are those of `Traffic`."""

    old_producers: Annotated[float, _share(help="Share of produced records that come from old producers.")] = 0.1
    old_consumers: Annotated[float, _share(help="Share of fetched records that go to old consumers.")] = 0.2
    old_data: Annotated[float, _share(help="Share of fetched records that were stored before the change.")] = 0.0
    canary_leaders: Annotated[float, _share(help="Share of partition leaders on the canary broker.")] = 0.05


@app.command()
@with_option_groups
def migrate(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SOURCE...",
            help="Log segments, or folders with log segments in them. Default: nine shapes of records.",
        ),
    ] = None,
    plan_name: Annotated[str, typer.Option("--plan", metavar="NAME", help="The rollout: kip31, kip724 or v3.")] = "v3",
    codec: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The codec of all producers. Default: a topic's most frequent one; without SOURCE lz4.",
        ),
    ] = None,
    *,
    rollout: RolloutOptions,
    traffic: TrafficOptions,
    price_cpu_core_hour: Annotated[
        float, typer.Option(metavar="USD", help="Price of a core for an hour (assumed).")
    ] = 0.04,
    prices: PriceOptions,
    as_json: AsJson = False,
) -> None:
    """Show each phase of a format's rollout: conversions, refusals, costs, and where it pays."""
    from kfbench.codecs import CODECS
    from kfbench.migration.bills import Prices, Traffic
    from kfbench.migration.plans import PLANS, check_codec

    check_names("--plan", [plan_name], PLANS)
    check_names("--codec", [codec] if codec else None, CODECS)
    plan = PLANS[plan_name]
    try:
        if codec:
            check_codec(plan, codec)
        chosen_traffic = Traffic(**vars(rollout), **vars(traffic))
        chosen_prices = Prices(
            cpu_core_hour=price_cpu_core_hour,
            storage_gb_month=prices.price_storage_gb_month,
            network_gb=prices.price_network_gb,
        )
    except (IllegalCombination, InvalidConfig) as error:
        raise typer.BadParameter(str(error)) from None
    for source in sources or ():
        if str(source) in PLANS and not source.exists():
            raise typer.BadParameter(f"{source} is a plan: kfbench migrate --plan {source}", param_hint="SOURCE")

    from kfbench.migration.ask import migrate
    from kfbench.migration.text import migration_text

    answer = migrate(plan, codec, chosen_traffic, chosen_prices, sources or (), tracked)
    print_answer(as_json, answer.to_dict, lambda: migration_text(answer))
    fail_on_damage([], sources or (), damage=answer.damage, unread=answer.unread)
