"""Run SQL queries in a local Spark session. Its driver log and event log go to the folder that is the argument."""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

QUERIES = (
    "SELECT key, count(*), sum(amount) FROM orders GROUP BY key ORDER BY 3 DESC LIMIT 20",
    "SELECT key, name, avg(amount) FROM orders JOIN customers ON key = id GROUP BY 1, 2 HAVING avg(amount) > 3",
    "SELECT key, amount, rank() OVER (PARTITION BY key ORDER BY amount) AS place FROM orders WHERE amount > 90",
    "SELECT day, key, sum(amount) FROM orders GROUP BY CUBE (day, key)",
    "SELECT name, upper(name), length(name) FROM customers WHERE name LIKE '%9%' ORDER BY name",
    "SELECT count(DISTINCT key), max(day) FROM orders WHERE key IN (SELECT id FROM customers WHERE id % 3 = 0)",
)


def main() -> None:
    folder = Path(sys.argv[1])
    config = Path(__file__).with_name("log4j2.properties").as_uri()
    options = f"-Dlog4j2.configurationFile={config} -Dlines.folder={folder} -Duser.name=user -Duser.home=/home/user"
    os.environ["PYSPARK_SUBMIT_ARGS"] = f'--driver-java-options "{options}" pyspark-shell'
    (folder / "events").mkdir()
    builder = SparkSession.builder.master("local[2]").appName("orders")
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    with builder.getOrCreate() as spark:
        spark.range(40_000).selectExpr(
            "id % 1000 AS key",
            "cast(rand(7) * 100 AS int) AS amount",
            "date_add(date'2026-01-01', cast(id % 90 AS int)) AS day",
        ).createOrReplaceTempView("orders")
        spark.range(1_000).selectExpr("id", "concat('customer-', id) AS name").createOrReplaceTempView("customers")
        for i in range(60):
            spark.sql(QUERIES[i % len(QUERIES)]).collect()


if __name__ == "__main__":
    main()
