package org.apache.spark.sql.omnigraph

import org.apache.spark.SPARK_VERSION
import org.apache.spark.internal.Logging
import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}

/** Named by the setting `spark.sql.extensions`: scans of the data source `omnigraph` bring whole
  * Arrow batches into Spark's plans, of the columns and rows that a query needs. Without it they bring
  * rows, all of them, of all columns, and each row is copied twice. Loads get the rows of a DataFrame
  * more cheaply, too.
  */
class Extension extends (SparkSessionExtensions => Unit) with Logging {
  override def apply(extensions: SparkSessionExtensions): Unit =
    if (SPARK_VERSION.startsWith("4.3.")) {
      extensions.injectOptimizerRule(session => new GraphTables(session))
      extensions.injectPlannerStrategy(session => new BulkStrategy(session))
    } else
      logError(s"omnigraph reads rows one by one: its extension is for Spark 4.3, not $SPARK_VERSION.")
}

object Extension {
  def isOn(session: SparkSession): Boolean =
    session.conf.get("spark.omnigraph.columnar", "true") != "false"
}
