"""Sessions: which Java is taken, and what is said when there is none."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import omnigraph.spark
from omnigraph.errors import EngineMissing, InvalidArgument
from omnigraph.spark.defaults import found_setting
from omnigraph.spark.java import find_java
from omnigraph.spark.session import is_local
from tests.load.world import new_graph, person


def java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return home


@pytest.mark.parametrize("version", ["17.0.15", "25", "21-ea"])
def test_a_java_that_is_new_enough_is_taken(tmp_path: Path, version: str) -> None:
    home = java(tmp_path / "jdk", version)
    assert find_java({"JAVA_HOME": str(home)}) == home
    assert find_java({"PATH": str(home / "bin"), "HOME": str(tmp_path)}) == home


@pytest.mark.parametrize(("version", "number"), [("1.8.0_392", 8), ("11.0.2", 11)])
def test_an_old_java_is_named_with_what_to_do(tmp_path: Path, version: str, number: int) -> None:
    home = java(tmp_path / "jdk", version)
    with pytest.raises(EngineMissing, match=f"needs Java 17 or newer.* is Java {number}") as caught:
        find_java({"JAVA_HOME": str(home)})
    assert "apt install openjdk-17" in caught.value.hint


def test_a_home_without_java_is_an_error_and_not_passed_over(tmp_path: Path) -> None:
    with pytest.raises(EngineMissing, match="there is no Java in it"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_settings_are_given_by_their_full_names() -> None:
    with pytest.raises(InvalidArgument, match="'memory' is not a setting"):
        omnigraph.spark.session(memory="8g")


def test_what_spark_finds_by_itself_is_known(tmp_path: Path) -> None:
    """What is added to a setting must not take the place of what the file of defaults says."""
    (tmp_path / "spark-defaults.conf").write_text(
        "# spark.jars /no.jar\n\nspark.sql.extensions  a.B,c.D  \nspark.jars=/x.jar\n"
        "spark.driver.extraJavaOptions -Da=b -Dc=d\n"
    )
    there = {"SPARK_CONF_DIR": str(tmp_path)}
    names = ("spark.sql.extensions", "spark.jars", "spark.driver.extraJavaOptions", "spark.none")
    found = [found_setting(name, there) for name in names]
    assert found == ["a.B,c.D", "/x.jar", "-Da=b -Dc=d", ""]
    there["PYSPARK_SUBMIT_ARGS"] = "--jars /y.jar --conf spark.sql.extensions=e.F pyspark-shell"
    assert [found_setting(name, there) for name in names[:2]] == ["e.F", "/y.jar"]
    assert found_setting("spark.jars", {"SPARK_HOME": str(tmp_path)}) == ""
    assert found_setting("spark.jars", {"PYSPARK_SUBMIT_ARGS": "--conf 'open"}) == ""


def test_executors_in_this_process_are_told_from_others() -> None:
    places = ["local", "local[*]", "local[2,3]", "local-cluster[2,1,1024]", "spark://h", "yarn"]
    assert [is_local(place) for place in places] == [True, True, True, False, False, False]


def test_a_large_load_without_java_or_spark_stays_in_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_engine: None
) -> None:
    from omnigraph.engine import executors

    g = new_graph(tmp_path, spark_rows=1)
    (tmp_path / "jdk").mkdir()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    for module in ("executor", "session"):  # whatever runs in this process
        found = import_module(f"omnigraph.spark.{module}")
        monkeypatch.setattr(found, "active_session", lambda: None)
    people = [person(f"p{i}") for i in range(5)]
    result = g.load(people[:3])
    assert result.engine == "local"
    assert "above 1, but JAVA_HOME" in result.reason
    with pytest.raises(EngineMissing, match="there is no Java in it"):
        g.load(people[3:], engine="spark")
    monkeypatch.setattr(executors, "find_spec", lambda name: None)
    result = g.load(people[3:])
    assert (result.engine, len(result.counts)) == ("local", 1)
    assert "spark engine is not installed" in result.reason
