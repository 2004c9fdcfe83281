"""Started by Spark, which starts only modules whose name begins like its own."""

from pyspark.worker_util import get_sock_file_to_executor

from omnigraph.spark.planner import main

__all__ = ["main"]

if __name__ == "__main__":
    with get_sock_file_to_executor() as sock_file:
        main(sock_file, sock_file)
