"""Answers the ten questions of docs/fleet.md over a lake, with Spark.

    spark-submit spark_questions.py --lake /mnt/lake [--questions docs/fleet.md] [--json]
"""

import argparse
import decimal
import json
import os
import re

from pyspark.sql import SparkSession

TABLES = ("dumps", "types", "segments", "suspects")


def questions(path):
    """Returns the questions with their SQL. The first block of SQL, DuckDB's views, is skipped."""
    text = open(path, encoding="utf-8").read()
    blocks = re.findall(r"```sql\n(.*?)```", text, re.S)[1:]
    titles = re.findall(r"^\d+\. (.*)$", text, re.M)
    return list(zip(titles, blocks, strict=True))


def plain(value):
    return float(value) if isinstance(value, decimal.Decimal) else value


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lake", required=True)
    parser.add_argument("--questions", default=os.path.join(here, "../../docs/fleet.md"))
    parser.add_argument("--json", action="store_true", help="one JSON array of rows for each question, a line each")
    options = parser.parse_args()

    spark = (
        SparkSession.builder.appName("gcdump questions")
        # Ids are text, even if all of their hexadecimal digits are decimal.
        .config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    for table in TABLES:
        spark.read.parquet(os.path.join(options.lake, table)).createOrReplaceTempView(table)
    for title, sql in questions(options.questions):
        answer = spark.sql(sql)
        if options.json:
            print(json.dumps([[plain(value) for value in row] for row in answer.collect()]))
        else:
            print(title)
            answer.show(20, truncate=60)
    spark.stop()


if __name__ == "__main__":
    main()
