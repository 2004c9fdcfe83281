package org.apache.spark.sql.omnigraph

import org.apache.spark.SPARK_VERSION
import org.apache.spark.internal.Logging
import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.expressions.{And, AttributeReference, AttributeSet}
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2ScanRelation, DataSourceV2Strategy}
import org.apache.spark.sql.execution.datasources.v2.python.PythonScan
import org.apache.spark.sql.types.StructType

/** Named by the setting `spark.sql.extensions`: scans of the data source `omnigraph` bring whole
  * Arrow batches into Spark's plans, of the columns that a query needs. Without it they bring rows,
  * of all columns, and each row is copied twice. Loads get the rows of a DataFrame more cheaply, too.
  */
class Extension extends (SparkSessionExtensions => Unit) with Logging {
  override def apply(extensions: SparkSessionExtensions): Unit =
    if (SPARK_VERSION.startsWith("4.3.")) {
      extensions.injectPlannerStrategy(session => new ColumnarStrategy(session))
      extensions.injectPlannerStrategy(session => new BulkStrategy(session))
    } else
      logError(s"omnigraph reads rows one by one: its extension is for Spark 4.3, not $SPARK_VERSION.")
}

object Extension {
  def isOn(session: SparkSession): Boolean =
    session.conf.get("spark.omnigraph.columnar", "true") != "false"
}

/** Plans scans of our own source; every other plan is left to Spark. */
class ColumnarStrategy(session: SparkSession) extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case PhysicalOperation(projected, filters, found: DataSourceV2ScanRelation) if takes(found) =>
      val scan = found.scan.asInstanceOf[PythonScan]
      val kept = needed(found.output, AttributeSet((projected ++ filters).flatMap(_.references)))
      val names = kept.map(_.name).toSet
      val schema = StructType(scan.readSchema().filter(field => names(field.name)))
      val narrowed = found.copy(scan = new ColumnarScan(scan, schema), output = kept)
      val filtered = filters.reduceOption(And).fold[LogicalPlan](narrowed)(Filter(_, narrowed))
      sparks(Project(projected, filtered))
    case _ => Nil
  }

  private val sparks = new DataSourceV2Strategy(session.asInstanceOf[classic.SparkSession])

  private def takes(found: DataSourceV2ScanRelation): Boolean =
    found.scan.isInstanceOf[PythonScan] && found.relation.table.name() == "omnigraph" &&
      found.output.nonEmpty && Extension.isOn(session)

  /** A batch without any column has no number of rows: the smallest column tells it. */
  private def needed(all: Seq[AttributeReference], used: AttributeSet): Seq[AttributeReference] = {
    val kept = all.filter(used.contains)
    if (kept.nonEmpty) kept else all.sortBy(_.dataType.defaultSize).take(1)
  }
}
