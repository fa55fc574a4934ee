"""Writes the dumps of a folder to a lake of Parquet files, on all executors of a Spark cluster.

    spark-submit spark_job.py --dumps /mnt/dumps --lake /mnt/lake [--gcdump gcdump] [--timeout 3600]

Executors need `gcdump`, and both folders at the same paths. Each dump is a task. Dumps that the lake has are skipped, a dump that fails does not
stop the others, and a job that was interrupted continues where it stopped.
"""

import argparse
import json
import os
import subprocess
import sys

from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

# The row of `gcdump fleet` for a dump.
ROW = StructType(
    [StructField(name, StringType()) for name in ("path", "id", "state", "runtime")]
    + [StructField(name, LongType()) for name in ("objects", "bytes")]
    + [StructField("error", StringType())]
)


def add(path, lake, gcdump, timeout):
    """Adds a dump to the lake. Each partition is renamed when it is complete, so concurrent and repeated tasks do not interfere."""
    command = [gcdump, "fleet", path, "-o", lake, "--workers", "1", "--json", "--no-local-files"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return path, None, "failed", None, None, None, f"took more than {timeout} seconds"
    try:
        row = json.loads(ran.stdout)["data"]["dumps"][0]
    except (ValueError, LookupError):
        # A dump that cannot be read has no answer, only a row in the lake.
        return path, None, "failed", None, None, None, (ran.stderr.strip() or f"exit code {ran.returncode}")[-1000:]
    return path, row["id"], row["state"], row["runtime"], row["objects"], row["bytes"], row["error"]


def dumps_in(folder):
    names = sorted(os.listdir(folder))
    return [os.path.join(folder, name) for name in names if any(end in name for end in (".dmp", ".mdmp", ".core", "core."))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dumps", required=True)
    parser.add_argument("--lake", required=True)
    parser.add_argument("--gcdump", default="gcdump")
    parser.add_argument("--timeout", type=int, default=3600, help="seconds for a dump")
    options = parser.parse_args()

    spark = SparkSession.builder.appName("gcdump fleet").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    # Executors have other working directories, so paths must be absolute.
    paths = dumps_in(os.path.abspath(options.dumps))
    if not paths:
        sys.exit(f"no dump in {options.dumps}")
    lake, gcdump, timeout = os.path.abspath(options.lake), options.gcdump, options.timeout
    # One partition per dump, so that a large dump does not delay others.
    rows = spark.sparkContext.parallelize(paths, len(paths)).map(lambda path: add(path, lake, gcdump, timeout)).collect()
    done = spark.createDataFrame(rows, ROW)
    done.orderBy("path").show(len(rows), truncate=False)
    done.groupBy("state").count().orderBy("state").show()
    spark.stop()


if __name__ == "__main__":
    main()
