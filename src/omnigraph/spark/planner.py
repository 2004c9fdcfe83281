"""Owns the process in which the extension plans a scan (`jvm/Inside.scala`): which columns and rows
of a source are read, in which parts, and what the optimizer may know of it.
"""

from __future__ import annotations

import json
from typing import IO

from pyspark.serializers import UTF8Deserializer, read_bool, read_int, write_with_length
from pyspark.sql.types import StructType, _parse_datatype_json_string
from pyspark.sql.worker.plan_data_source_read import write_read_func_and_partitions
from pyspark.sql.worker.utils import worker_run
from pyspark.worker_util import pickleSer, read_command

from omnigraph.spark.pushed import pushed_tests
from omnigraph.spark.source import OmnigraphReader


def _plan(infile: IO[bytes], outfile: IO[bytes]) -> None:
    texts = UTF8Deserializer()
    source = read_command(pickleSer, infile)
    schema: StructType = _parse_datatype_json_string(texts.loads(infile))
    wanted = json.loads(texts.loads(infile))
    rows, as_bytes = read_int(infile), read_bool(infile)
    scan = source.scan()
    pushed_tests(scan.pinned.kind, wanted["tests"])  # what cannot be read ends here, in no task
    told = {"rows": scan.rows, "bytes": scan.bytes_of(schema.names), "identity": scan.identity}
    reader = OmnigraphReader(
        scan.narrowed(schema.names, pushed=wanted["tests"], limit=wanted["limit"])
    )
    write_read_func_and_partitions(
        outfile,
        reader=reader,
        data_source=source,
        schema=schema,
        max_arrow_batch_size=rows,
        binary_as_bytes=as_bytes,
    )
    write_with_length(json.dumps(told).encode(), outfile)


def main(infile: IO[bytes], outfile: IO[bytes]) -> None:
    worker_run(_plan, infile, outfile)
